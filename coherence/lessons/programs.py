"""Tables of well-known command-line programs: what they are for, and which of their words change something."""

from __future__ import annotations

import re

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set

TRIVIAL = word_set(
    "cd pushd popd echo printf true false : export unset set source . sleep wait clear pwd whoami date test [ [[ "
    "which type whereis command hash alias env printenv id uname hostname history exit return read trap shopt "
    "tput seq yes ulimit local declare nproc uptime free df du break continue"
)
"""What a line is never about."""

QUIET = word_set("grep egrep fgrep rg ag diff cmp find fd pgrep pidof jq xmllint watch")
"""What also fails to say that nothing was found, which is no error."""

READERS = word_set(
    "cat bat ls ll tree head tail less more wc sort uniq cut awk sed nl tr column file stat md5sum sha256sum xxd od"
)
"""What only shows, unless told otherwise."""

INTERPRETERS = word_set("python pypy node ruby perl php lua deno julia rscript ts-node tsx java")
"""What runs scripts, and code that is typed in place."""

TESTERS = word_set(
    "pytest unittest jest vitest mocha ava tape karma cypress rspec phpunit tox nox ctest mypy pyright ruff "
    "flake8 pylint black isort eslint prettier tsc shellcheck golangci-lint rubocop bandit"
)
"""What runs tests or looks for faults; which of them is no part of what it is for."""

NESTED = word_set("aws gcloud az gh kubectl helm")
"""Programs with sub-commands of sub-commands."""

WRAPPERS = {
    **dict.fromkeys(
        sorted(
            word_set("sudo doas time nohup nice env command exec xvfb-run stdbuf caffeinate npx bunx pnpx uvx xargs")
        ),
        0,
    ),
    "timeout": 1,
    "gtimeout": 1,
}
"""What runs another program -> words that stand before it, flags not counted."""

RUNNERS = {
    **{(tool, "run"): 0 for tool in ("uv", "poetry", "pipenv", "pdm", "hatch", "rye")},
    **{(tool, "exec"): 0 for tool in ("npm", "pnpm", "yarn", "bundle", "mise", "direnv")},
    **{(tool, "dlx"): 0 for tool in ("pnpm", "yarn")},
    ("bun", "x"): 0,
    ("conda", "run"): 0,
    ("docker", "exec"): 1,
    ("podman", "exec"): 1,
    ("kubectl", "exec"): 1,
}
"""The same for programs that do so with a sub-command."""

VALUED = {
    "git": word_set("-m --message -C -c --author"),
    **dict.fromkeys(
        ("docker", "podman", "docker compose"),
        word_set(
            "-p -v -e -w -u -f --name --network --env --volume --publish --env-file --platform --mount --user --file -t"
        ),
    ),
    "pytest": word_set("-k -m -n -p -o -c --tb --rootdir --cov --junitxml"),
    "make": word_set("-j -C -f"),
    "kubectl": word_set("-n --namespace -l -c --context --kubeconfig"),
    "helm": word_set("-n --namespace -f --values --set --kube-context"),
    "pip": word_set("-i --index-url --extra-index-url -c -t --target --trusted-host -f --find-links --python"),
    "npm": word_set("--prefix --registry -w --workspace"),
    "yarn": word_set("--cwd --registry"),
    "pnpm": word_set("-C --filter --registry"),
    "curl": word_set("-X -H -d --data --data-raw -o -u -m --max-time --retry -A --header --request --cacert"),
    "wget": word_set("-O -o -P"),
    "cargo": word_set("-p --package --features --manifest-path --target --bin -j"),
    "go": word_set("-run -timeout -count -o -tags"),
    **dict.fromkeys(("psql", "pg_dump", "createdb", "mysql"), word_set("-U -h -p -c -d -f -e -u -P")),
    "ssh": word_set("-p -i -o -l"),
    "scp": word_set("-P -i -o"),
    **dict.fromkeys(("gcc", "g++", "clang", "cc", "c++"), word_set("-o -I -L -l -std")),
    **dict.fromkeys(("uvicorn", "gunicorn", "flask"), word_set("--host --port -b --bind -w -k --app -p -h")),
    "node": word_set("-r --require --import --loader"),
    "python": word_set("-W -X"),
    "java": word_set("-cp -classpath --class-path"),
    "tar": word_set("-C"),
    "jest": word_set("-t -c --config"),
    "conda": word_set("-n --name -c --channel -p"),
    "terraform": word_set("-chdir"),
}
"""Flags that take the next word."""

CHANGING = word_set(
    "mkdir rmdir touch chmod chown chgrp mv cp rm ln install patch unzip tar gunzip dd truncate kill pkill "
    "killall service sysctl usermod useradd groupadd setfacl mount umount createdb dropdb createuser initdb "
    "corepack locale-gen ssh-keygen ssh-add ssh-keyscan setcap update-alternatives ldconfig rsync wget patchelf "
    "dos2unix autopep8 venv virtualenv xcode-select fuser modprobe iptables ufw"
)
"""Programs that change something whatever their words."""

TOOL_CHANGES = word_set(
    "create delete remove rename move save update put insert append copy add make set install uninstall start "
    "restart stop enable disable reset configure grant revoke upgrade assign register activate approve unlock "
    "lock book cancel send write edit apply invite share connect login authenticate switch checkout restore "
    "reschedule reboot kill toggle turn mount attach detach migrate pay transfer deploy import"
)
"""Words in the names of tools that change something; the first of these or of TOOL_LOOKS decides."""

TOOL_LOOKS = word_set(
    "get list search find read show fetch look lookup check query describe view calculate compute validate verify "
    "think count test tests analyze analyse summarize ask todo plan"
)

_VERBS = word_set(
    "install i add remove uninstall update upgrade sync lock init create delete set apply start restart stop up "
    "down pull clone checkout switch merge rebase reset stash restore fetch commit rm mv prune login auth link "
    "unlink use enable disable import migrate makemigrations makemigration generate gen codegen tidy build "
    "rebuild clean download dedupe rollout scale patch label ci reload unlock fix setup bootstrap seed configure "
    "register unset apply-patch am cherry-pick revert config compile collectstatic provision unmask load tag "
    "rename repair flush server daemon develop activate kill dump fmt stamp submodule require reinstall trust untrust "
    "push deploy release restore-keys inject"
)
_LOOKS = word_set(
    "list ls show status info log logs ps search help version view describe outdated tree check test lint get why "
    "audit freeze diff history inspect images"
)
_TRIES = word_set("test tests check verify debug reproduce repro try demo example")
_WORD = lazy_regex(r"[a-z]+")
_ALWAYS = {("go", "get"), ("go", "mod"), ("docker", "run"), ("podman", "run"), ("git", "clean")}
_RUNS = word_set("bundle npm yarn pnpm bun make just rake task invoke nox")


def changes_by_words(name: str, nouns: list[str], rest: list[str]) -> bool:
    """Tell whether a command may change something, by the words of its program, sub-command, script or target.

    Examples
    --------
    >>> changes_by_words("git", ["stash"], ["stash"]), changes_by_words("git", ["stash", "list"], ["stash", "list"])
    (True, False)
    >>> changes_by_words("make", ["generate"], ["generate"]), changes_by_words("make", ["test"], ["test"])
    (True, False)
    """
    deed = nouns[0] if nouns else ""
    if (name, deed) in _ALWAYS:
        return True
    if any(word in ("--list", "--get", "-l") for word in rest[:3]):
        return False
    if "--fix" in rest:
        return True
    if name == "git":
        if deed in ("remote", "branch", "lfs", "worktree"):
            return len(nouns) > 1
        return deed in _VERBS and nouns[1:2] not in (["list"], ["show"], ["status"])
    if any(noun in _LOOKS for noun in nouns[:2]):
        return (name, *nouns[:2]) == ("npm", "audit", "fix")
    if name in ("cargo", "go") and deed in ("build", "run", "vet"):
        return False
    if name in _RUNS and not nouns:
        return name in ("yarn", "bundle", "make")  # the first two install, make builds
    words = [word for part in (name, *nouns[:3]) for word in _WORD.findall(part.lower()[:80])]
    return not _VERBS.isdisjoint(words) and (name not in INTERPRETERS or _TRIES.isdisjoint(words))


SHOWS = tuple(
    f"{name} {deed}"
    for name, deeds in (
        ("git", "status log diff show branch"),
        ("pip", "list show freeze check"),
        ("docker", "ps logs images inspect"),
        ("docker compose", "ps logs"),
        ("kubectl", "get describe logs"),
        ("systemctl", "status"),
    )
    for deed in deeds.split()
)
"""Beginnings of commands that only show, although their programs do more than that."""

_CHANGES_TABLES = lazy_regex(r"\b(?:create|alter|insert|grant|revoke|drop|update|delete)\b", re.IGNORECASE)


def changes_tables(words: list[str]) -> bool:
    """Tell whether a database's client is given a statement that changes something."""
    return any(_CHANGES_TABLES.search(word) for word in words[:40])


_WRITES = lazy_regex(
    r"""open\([^)\n]{0,200},\s*(?:mode\s*=\s*)?['"][wax]|\.write_(?:text|bytes)\(|\bshutil\.|\bos\.(?:rename|remove|replace|makedirs|mkdir|chmod|unlink)\b"""
    r"""|writeFile(?:Sync)?\(|\.unlink\(|\.mkdir\(|\bsubprocess\.|FileUtils\.|File\.write"""
)


def writes_files(code: str) -> bool:
    """Tell whether a script that was typed in place looks as if it changed files.

    Examples
    --------
    >>> writes_files("open('a.py', 'w').write(text)"), writes_files("print(open('a.py').read())")
    (True, False)
    """
    return _WRITES.search(code[:20_000]) is not None
