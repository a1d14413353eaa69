"""Made-up secrets of many vendors in the forms in which agents meet them, and harmless texts that look alike.

A secret is put together at run time: a prefix that its vendor publishes, and a random body. None was ever valid.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
import uuid
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import quote, unquote

ALPHABETS = {
    "a": string.ascii_letters + string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "c": string.ascii_letters,
    "d": string.digits,
    "h": "0123456789abcdef",
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "w": string.ascii_letters + string.digits + "_-",
    "x": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}
"""Names of alphabets in :data:`TEMPLATES`: a36 stands for 36 random letters and digits."""

UUID = "<h8>-<h4>-<h4>-<h4>-<h12>"
TEMPLATES = f"""
1password A3-<u6>-<u6>-<u5>-<u5>-<u5>-<u5>
1password-service ops_eyJ<b260>
adafruit aio_<a28>
adobe p8e-<l32>
age AGE-SECRET-KEY-1<x58>
airtable pat<a14>.<h64>
aiven AVNS_<w19>
alibaba LTAI<a20>
anthropic sk-ant-api03-<w93>AA
anthropic-admin sk-ant-admin01-<w93>AA
anthropic-oauth sk-ant-oat01-<w93>AA
apify apify_api_<a36>
artifactory AKCp<a69>
artifactory-reference cmVmd<a59>
asana 1/<d16>:<h32>
atlassian ATATT3xFfGF0<w180>
aws AKIA<u16>
aws-temporary ASIA<u16>
aws-bedrock ABSK<b109>=
axiom xaat-{UUID}
azure <a3>8Q~<w34>
backblaze K005<b27>
bitbucket ATBB<a24><h8>
bitbucket-repository ATCTT3xFfGN0<w180>
braintree access_token$production$<l16>$<h32>
brevo xkeysib-<h64>-<a16>
brevo-smtp xsmtpsib-<h64>-<a16>
buildkite bkua_<h40>
cerebras csk-<l48>
circleci CCIPAT_<a22>_<h40>
clickhouse 4b1d<a38>
clickup pk_<d8>_<u32>
clojars CLOJARS_<l60>
cloudflare-origin v1.0-<h24>-<h146>
confluent cflt<b60>
contentful CFPAT-<w43>
crates cio<a32>
databricks dapi<h32>
databricks-2 dapi<h32>-2
dbt dbtc_<a43>
defined dnkey-<w26>-<w52>
deno ddp_<a36>
digitalocean dop_v1_<h64>
digitalocean-oauth doo_v1_<h64>
digitalocean-refresh dor_v1_<h64>
discord MTA<a21>.<a6>.<w38>
docker dckr_pat_<w27>
docker-organization dckr_oat_<w32>
doppler dp.pt.<a43>
doppler-service dp.st.prod.<a43>
dropbox sl.<w135>
duffel duffel_live_<w43>
dynatrace dt0c01.<u24>.<u64>
e2b e2b_<h40>
easypost EZAK<a54>
easypost-test EZTK<a54>
elastic essu_<b66>==
elevenlabs sk_<h48>
facebook EAAC<a120>
figma figd_<w40>
firecrawl fc-<h32>
fireworks fw_<a24>
flagsmith ser.<a22>
flutterwave FLWSECK_TEST-<h32>-X
flyio fo1_<w43>
flyio-macaroon fm2_<b160>
frameio fio-u-<w64>
friendli flp_<a46>
github ghp_<a36>
github-app ghs_<a36>
github-fine github_pat_<a22>_<a59>
github-oauth gho_<a36>
github-refresh ghr_<a76>
github-user ghu_<a36>
gitlab glpat-<w20>
gitlab-deploy gldt-<w20>
gitlab-feed glft-<w20>
gitlab-mail glimt-<w25>
gitlab-oauth gloas-<h64>
gitlab-runner glrt-<w20>
gitlab-scim glsoat-<w20>
gitlab-trigger glptt-<h40>
gitlab-agent glagent-<w50>
gitlab-job glcbt-<a2>_<w20>
gocardless live_<w40>
google-api AIza<w35>
google-oauth ya29.<w120>
google-refresh 1//0<w60>
google-client GOCSPX-<w28>
grafana-cloud glc_<b120>
grafana-service glsa_<a32>_<h8>
groq gsk_<a52>
harness pat.<a22>.<h24>.<a20>
heroku HRKU-AA<w58>
hex hxtp_<h96>
honeycomb hcaik_<l58>
hubspot pat-na1-{UUID}
huggingface hf_<c34>
huggingface-organization api_org_<c34>
infisical st.<h24>.<h32>.<h32>
infracost ico-<a32>
inngest signkey-prod-<h64>
instagram IGQV<w140>
intra42 s-s4t2ud-<h64>
jina jina_<a32><w29>
jwt eyJhbGciOiJIUzI1NiJ9.eyJ<a60>.<w43>
kaggle KGAT_<h32>
klaviyo pk_<h34>
langfuse sk-lf-{UUID}
langsmith lsv2_pt_<h32>_<h10>
launchdarkly sdk-{UUID}
linear lin_api_<a40>
linkedin WPL_AP1.<a16>.<b8>
llama llx-<a48>
lob live_<h35>
logfire pylf_v1_us_<a43>
mailersend mlsn.<h64>
mailgun key-<h32>
mandrill md-<w22>
mapbox sk.eyJ1Ijoi<a60>.<w22>
mem0 m0-<a40>
metabase mb_<b43>=
modal as-<a22>
mollie live_<a30>
mongodb mdb_sa_sk_<w40>
neon napi_<l64>
neon-password npg_<a12>
netlify nfp_<a36>
newrelic NRAK-<u27>
newrelic-browser NRJS-<h19>
newrelic-insert NRII-<w32>
notion ntn_<d11><a35>
notion-older secret_<a43>
npm npm_<a36>
nuget oy2<l43>
nvidia nvapi-<w64>
octopus API-<u26>
onesignal os_v2_app_<l103>
openai sk-<a20>T3BlbkFJ<a20>
openai-project sk-proj-<w74>T3BlbkFJ<w74>
openai-service sk-svcacct-<w74>T3BlbkFJ<w74>
openrouter sk-or-v1-<h64>
openshift sha256~<w43>
paddle pdl_live_apikey_<l26>_<a22>_<a3>
paypal A21AA<w92>
perplexity pplx-<a48>
pinecone pcsk_<a5>_<a63>
plaid access-production-{UUID}
planetscale pscale_tkn_<w43>
planetscale-password pscale_pw_<w43>
polar polar_oat_<a43>
posthog phx_<a43>
postman PMAK-<h24>-<h34>
prefect pnu_<a36>
pulumi pul-<h40>
pypi pypi-AgEIcHlwaS5vcmc<w120>
readme rdme_<l70>
render rnd_<a28>
replicate r8_<a37>
resend re_<a8>_<a24>
rubygems rubygems_<h48>
runpod rpa_<u40>
salesforce 00D<a15>!<a96>
scaleway SCW<u17>
scalingo tk-us-<w48>
segment sgp_<a64>
sendgrid SG.<w22>.<w43>
sentry-organization sntrys_eyJpYXQiO<b120>=_<b43>
sentry-user sntryu_<h64>
settlemint sm_pat_<a16>
shippo shippo_live_<h40>
shopify shpat_<h32>
shopify-shared shpss_<h32>
slack-app xapp-1-<u11>-<d13>-<h64>
slack-bot xoxb-<d12>-<d13>-<a24>
slack-user xoxp-<d12>-<d12>-<d13>-<h32>
slack-refresh xoxe-1-<u146>
snyk snyk_uat.<h8>.<w80>
sonar squ_<h40>
sourcegraph sgp_<h16>_<h40>
square sq0atp-<w22>
square-secret sq0csp-<w43>
stackhawk hawk.<a20>.<a20>
statsig secret-<a43>
stripe sk_live_<a24>
stripe-long rk_live_<a99>
stripe-test sk_test_<a24>
stripe-webhook whsec_<b32>
stytch secret-live-<w40>
supabase sbp_<h40>
supabase-secret sb_secret_<w31>
tailscale tskey-auth-<a17>-<a32>
tavily tvly-dev-<a32>
telegram 1234567890:AA<w33>
tencent AKID<a32>
terraform <a14>.atlasv1.<w67>
together tgp_v1_<w43>
trello ATTA<h72>
trigger tr_prod_<a20>
twilio SK<h32>
twitter-bearer AAAAAAAAAAAAAAAAAAAAA<a22>%2F<a30>%3D<a32>
typeform tfp_<a44>_<a14>
vault hvs.<w95>
vault-batch hvb.<w140>
vault-older s.<a24>
vercel vcp_<a52>
voyage pa-<w43>
wandb wandb_v1_<w77>
xai xai-<a80>
xendit xnd_production_<a48>
yandex AQVN<w36>
"""
"""One vendor's secret a line."""

NAMES = [line.split(" ")[0] for line in TEMPLATES.strip().split("\n")]
_PART = re.compile(r"<([a-z])(\d+)>")
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
WINDOW = 8
"""Characters of a body that must not be left over in a row."""


class Secret(NamedTuple):
    """A made-up secret."""

    name: str
    text: str
    body: str
    """The part that no two secrets of a kind share: from its first random character on."""


def secrets(seed: int = 0, rounds: int = 1) -> Iterator[Secret]:
    """Yield a made-up secret of each kind, several times."""
    chance = random.Random(seed)
    for _ in range(rounds):
        for line in TEMPLATES.strip().split("\n"):
            name, template = line.split(" ")
            yield _made(name, template, chance)


def _made(name: str, template: str, chance: random.Random) -> Secret:
    def body(part: re.Match[str]) -> str:
        size = int(part[2])
        found = "".join(chance.choices(ALPHABETS[part[1]], k=size))
        return found if found[0] not in "-_" else f"k{found[1:]}"

    text = _PART.sub(body, template)
    # What stands before ":AA" is the number of a bot, before ".atlasv1." and "8Q~" a name or its beginning.
    head = re.match(r"[^<]*", template[template.find(".atlasv1.") + 1 :] if ".atlasv1." in template else template)
    fixed = {"telegram": "1234567890:AA", "azure": text[:6], "terraform": text[:23]}.get(name, head[0] if head else "")
    return Secret(name, text, text[len(fixed) :])


def plain(secret: str, chance: random.Random) -> str:
    return f"the deploy uses {secret}, please keep it"


def coloured(secret: str, chance: random.Random) -> str:
    cut = chance.randrange(1, len(secret))
    colour, reset = chance.choice(
        [("\x1b[32m", "\x1b[0m"), ("\x1b[1;38;5;208m", "\x1b[m"), ("\x1b[K\x1b[91m", "\x1b[39m")]
    )
    return chance.choice(
        [
            f"key {colour}{secret}{reset} found",
            f"key {colour}{secret[:cut]}{reset}\x1b[1m{secret[cut:]}{reset} found",
            f"{colour}key: {reset}{colour}{secret}{reset}",
        ]
    )


def quoted(secret: str, chance: random.Random) -> str:
    mark = chance.choice("\"'`")
    return f"client = Client(key={mark}{secret}{mark})"


def url_encoded(secret: str, chance: random.Random) -> str:
    encoded = quote(secret, safe="")
    return chance.choice(
        [
            f"GET https://api.example.com/v1/items?limit=5&k={encoded}&page=2 200",
            f"redirect=https%3A%2F%2Fexample.com%2Fcallback%3Fk%3D{encoded}%26page%3D2",
        ]
    )


def wrapped(secret: str, chance: random.Random) -> str:
    words = "the agent wrote all of its settings into a file and then it read them back from there again".split()
    lead = ""
    while len(lead) < chance.randrange(40, 78):
        lead += chance.choice(words) + " "
    line = f"{lead[:77].rsplit(' ', 1)[0]} {secret} and went on with the next task of the list that it was given"
    indent = chance.choice(["", "    "])
    rows = [line[:80]]
    rest = line[80:]
    while rest:
        rows.append(indent + rest[: 80 - len(indent)])
        rest = rest[80 - len(indent) :]
    return "\n".join(rows)


def in_json(secret: str, chance: random.Random) -> str:
    return json.dumps({"log": f"reading settings\n{secret}\ndone", "n": 3, "items": [{"value": secret}]})


def in_traceback(secret: str, chance: random.Random) -> str:
    return (
        'Traceback (most recent call last):\n  File "/srv/app/client.py", line 41, in connect\n'
        f"    session = login('{secret}')\n"
        f"app.errors.AuthError: 401 for {secret}\n"
    )


FORMS: dict[str, Callable[[str, random.Random], str]] = {
    "plain": plain,
    "coloured": coloured,
    "quoted": quoted,
    "URL-encoded": url_encoded,
    "wrapped at 80": wrapped,
    "in JSON": in_json,
    "in a traceback": in_traceback,
}


def split(secret: str, chance: random.Random) -> tuple[str, str]:
    """Return two texts that a stream was cut into."""
    cut = chance.randrange(2, len(secret) - 1)
    return f"The key is {secret[:cut]}", f"{secret[cut:]} and nothing else."


def is_left(secret: Secret, text: str) -> bool:
    """Tell whether a text still shows a part of a secret, in whatever form."""
    seen = _ESCAPE.sub("", unquote(text).replace("\\n", "\n"))
    seen = re.sub(r"\n[ \t]*", "", seen)
    body = unquote(secret.body)
    return any(body[at : at + WINDOW] in seen for at in range(max(1, len(body) - WINDOW + 1)))


def look_alikes(seed: int = 0) -> list[str]:
    """Return 200 harmless texts with hashes, ids, names and data."""
    chance = random.Random(seed)

    def some(alphabet: str, size: int) -> str:
        return "".join(chance.choices(ALPHABETS[alphabet], k=size))

    def data(size: int) -> str:
        return base64.b64encode(chance.randbytes(size)).decode()

    def lines(text: str) -> str:
        return "\n".join(text[at : at + 76] for at in range(0, len(text), 76))

    makers: list[Callable[[], str]] = [
        lambda: f"commit {some('h', 40)}",
        lambda: f"{some('h', 64)}  dist/app-{some('d', 1)}.{some('d', 2)}.tar.gz",
        lambda: f"md5: {some('h', 32)}",
        lambda: f"image@sha256:{some('h', 64)}",
        lambda: f"request {uuid.UUID(int=chance.getrandbits(128))} done",
        lambda: f'"id": "{uuid.UUID(int=chance.getrandbits(128))}", "next": null',
        lambda: f"data:image/png;base64,iVBORw0KGgoAAAANSUhEUg{data(300)}",
        lambda: lines(data(600)),
        lambda: f'integrity": "sha512-{data(64)}"',
        lambda: f"chatcmpl-{some('a', 29)} call_{some('a', 24)} msg_{some('a', 24)} toolu_01{some('a', 22)}",
        lambda: f"run_{some('a', 24)} thread_{some('a', 24)} asst_{some('a', 24)} file-{some('a', 24)}",
        lambda: f"cus_{some('a', 14)} pi_{some('a', 24)} sub_{some('a', 24)} evt_{some('a', 24)}",
        lambda: f"i-{some('h', 17)} vpc-{some('h', 17)} sg-{some('h', 17)} ami-{some('h', 17)}",
        lambda: f"arn:aws:iam::{some('d', 12)}:role/service-role-for-batch-{some('d', 4)}",
        lambda: f"pod/web-{some('l', 10)}-{some('l', 5)} Running",
        lambda: f"/assets/index-{some('w', 8)}.js /static/main.{some('h', 20)}.css",
        lambda: f"trace_id={some('h', 32)} span_id={some('h', 16)}",
        lambda: f"01{some('u', 24)} 2{some('a', 26)}",
        lambda: f"ETag: W/{some('h', 4)}-{some('a', 27)}",
        lambda: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{data(30)} me@host",
        lambda: f"-----BEGIN CERTIFICATE-----\n{lines(data(500))}\n-----END CERTIFICATE-----",
        lambda: f"def test_the_reader_keeps_the_order_of_lines_{some('d', 3)}(tmp_path):",
        lambda: f"//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjoz{data(200)}",
        lambda: f"https://example.com/{some('a', 22)}/edit?gid={some('d', 10)}#heading-{some('l', 12)}",
        lambda: f"Merge-base {some('h', 12)}..{some('h', 12)} at 2026-0{some('d', 1)}-1{some('d', 1)}T10:00:00Z",
    ]
    return [makers[at % len(makers)]() for at in range(200)]
