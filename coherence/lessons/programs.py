"""Words of shells and tools: which programs show, test or run others, and which words say that something changes."""

from __future__ import annotations

from coherence.core.lazy import lazy_regex
from coherence.core.words import letter_runs, word_set

TRIVIAL = word_set(
    "cd pushd popd echo printf true false : export unset set source . sleep wait clear pwd whoami date test [ [[ "
    "which type whereis command hash alias env printenv id uname hostname history exit return read trap shopt "
    "tput seq yes ulimit local declare nproc uptime free df du break continue"
)
"""Programs that no line is about."""

QUIET = word_set("grep egrep fgrep rg ag diff cmp find fd pgrep pidof jq xmllint watch")
"""Programs whose failure may only mean that nothing was found."""

READERS = word_set(
    "cat bat ls ll tree head tail less more wc sort uniq cut awk sed nl tr column file stat md5sum sha256sum xxd od"
)
"""Programs that show something and change nothing, unless a flag says otherwise."""

INTERPRETERS = word_set("python pypy node ruby perl php lua deno julia rscript ts-node tsx java")
"""Programs that run scripts, and code that is typed in place."""

TESTERS = word_set(
    "pytest unittest jest vitest mocha ava tape karma cypress rspec phpunit tox nox ctest mypy pyright ruff "
    "flake8 pylint eslint prettier tsc shellcheck golangci-lint rubocop bandit"
)
"""Programs that run tests or look for faults."""

NESTED = word_set("aws gcloud az gh kubectl helm")
"""Programs with sub-commands of sub-commands."""

_RUNS_OTHERS = "sudo doas time nohup nice env command exec stdbuf npx bunx pnpx uvx xargs"

WRAPPERS: dict[str | tuple[str, ...], int] = {
    **dict.fromkeys(_RUNS_OTHERS.split(), 0),
    "timeout": 1,
    "gtimeout": 1,
    **{(tool, "run"): 0 for tool in ("uv", "poetry", "pipenv", "pdm", "hatch", "rye", "conda")},
    **{(tool, "exec"): 0 for tool in ("npm", "pnpm", "yarn", "bundle")},
    **{(tool, "exec"): 1 for tool in ("docker", "podman", "kubectl")},
}
"""Programs, some with a sub-command, that run another one -> words that stand before it, flags not counted."""

VALUED = {
    "git": word_set("-m --message -C -c --author"),
    **dict.fromkeys(
        ("docker", "podman", "docker compose"),
        word_set("-p -v -e -w -u -f -t --name --network --env --volume --publish --env-file --platform --file"),
    ),
    "pytest": word_set("-k -m -n -p -o -c"),
    "make": word_set("-j -C -f"),
    **dict.fromkeys(("kubectl", "helm"), word_set("-n --namespace -l -c -f --context --values --set")),
    "pip": word_set("-i --index-url --extra-index-url -c -t --target -f --find-links"),
    **dict.fromkeys(("npm", "yarn", "pnpm"), word_set("--prefix --registry -w --workspace --cwd -C --filter")),
    "curl": word_set("-X -H -d --data -o -u -m --max-time --retry -A --header --request"),
    "cargo": word_set("-p --package --features --manifest-path --target --bin -j"),
    **dict.fromkeys(("psql", "mysql"), word_set("-U -h -p -c -d -f -e -u -P")),
    **dict.fromkeys(("ssh", "scp"), word_set("-p -P -i -o -l")),
    **dict.fromkeys(("gcc", "g++", "clang"), word_set("-o -I -L -l -std")),
    "java": word_set("-cp -classpath --class-path"),
    "conda": word_set("-n --name -c --channel -p"),
}
"""Flags that take the next word."""

LOOKS = word_set(
    "list ls show status log logs get describe inspect ps images diff view freeze info history branch search find read "
    "fetch query lookup help outdated audit"
)
"""Words of programs and tools that only show something."""

TRIES = word_set("test tests lint check verify validate debug reproduce repro try demo example count analyze plan")
"""Words of scripts and tools that try something out."""

CHANGES = word_set(
    "mkdir rmdir touch chmod chown mv cp rm ln unzip tar gunzip dd truncate kill pkill killall mount umount createdb "
    "dropdb createuser initdb keygen rsync wget venv virtualenv black isort "
    "install i add remove uninstall update upgrade sync lock init create delete set apply start restart stop up down "
    "pull push clone checkout switch merge rebase reset stash restore commit prune login auth link unlink use enable "
    "disable import migrate makemigrations generate gen codegen tidy build rebuild clean download rollout scale patch "
    "label ci reload unlock fix setup bootstrap seed configure config register unset am cherry revert compile "
    "collectstatic provision load tag rename repair flush daemon activate dump fmt stamp submodule require reinstall "
    "trust deploy release save put insert append copy grant revoke assign approve book cancel send write edit "
    "invite share connect authenticate attach detach pay transfer move"
)
"""Words of programs, sub-commands, scripts and tools that say that something changes."""

_BY_PAIR = {
    **{(tool, "run"): True for tool in ("docker", "podman")},
    **{(tool, ""): True for tool in ("yarn", "bundle", "make")},
    **{("go", deed): deed in ("get", "mod") for deed in ("get", "mod", "build", "run")},
    ("cargo", "build"): False,
}
"""Programs with a sub-command of which the words do not say whether it changes something."""

_SQL = lazy_regex(r"(?i)\b(?:create|alter|insert|grant|revoke|drop|update|delete)\b")
_WRITES = lazy_regex(
    r"""open\([^)\n]{0,200},\s*(?:mode\s*=\s*)?['"][wax]|\.write_(?:text|bytes)\(|\bshutil\."""
    r"""|\bos\.(?:rename|remove|replace|makedirs|mkdir|chmod|unlink)\b|writeFile(?:Sync)?\(|\.unlink\(|\.mkdir\("""
    r"""|\bsubprocess\.|FileUtils\.|File\.write"""
)


def changes_by_words(name: str, nouns: list[str], rest: list[str]) -> bool:
    """Return whether a command may change something, by the words of its program, sub-command, script or target.

    Examples
    --------
    >>> changes_by_words("git", ["stash"], ["stash"]), changes_by_words("git", ["stash", "list"], ["stash", "list"])
    (True, False)
    >>> changes_by_words("make", ["generate"], ["generate"]), changes_by_words("make", ["test"], ["test"])
    (True, False)
    """
    pair = (name, nouns[0] if nouns else "")
    if pair in _BY_PAIR:
        return _BY_PAIR[pair]
    if "--fix" in rest or "--write" in rest or (name in CHANGES and nouns):
        return True
    if name in ("psql", "mysql", "sqlite3", "mariadb"):
        return any(map(_SQL.search, rest[:40]))
    if any(noun in LOOKS for noun in nouns[:2]) or not {"--list", "--get", "-l"}.isdisjoint(rest[:3]):
        return False
    # Behind git's sub-command stand branches and files, which may be called anything.
    words = {word for part in (name, *nouns[: 1 if name == "git" else 3]) for word in letter_runs(part[:80])}
    return not words.isdisjoint(CHANGES) and (name not in INTERPRETERS or words.isdisjoint(TRIES))


def writes_files(code: str) -> bool:
    """Return whether a script that was typed in place looks as if it changed files.

    Examples
    --------
    >>> writes_files("open('a.py', 'w').write(text)"), writes_files("print(open('a.py').read())")
    (True, False)
    """
    return _WRITES.search(code[:20_000]) is not None
