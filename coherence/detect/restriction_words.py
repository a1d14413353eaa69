"""Words and forms of clauses that restrict, in seven languages."""

from __future__ import annotations

import re

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set

CLAUSE_END = lazy_regex(
    r"[;:!?()–—。；！？，]+"
    r"|\s(?-i:(?=Do not |Never |Please |Don't ))|\.(?=\s|$)|,(?=\s)|\s-\s|\s(?=(?:but|because|since"
    r"|so that|aber|weil|sondern|mais|car"
    r"|pero|porque|ma|mas)\s)",
    re.IGNORECASE,
)
WORD = lazy_regex(r"(?:(?<!\S)\.)?[\w@/~*+-][\w@./~*'+-]*")
CONTRACTED = lazy_regex(
    r"\b(?:(?P<aux>\w{1,6})n't|(?P<whole>cannot|dont)|(?P<ne>n)'(?=[aeiouéêèh])(?!importe)|[ldjtmsc]'(?=\w{3}))",
    re.IGNORECASE,
)
CONDITION = lazy_regex(
    r"\b(?:unless|except (?:if|when)|if|when|whenever|once|before|after|until (?:i|you|we|he|she|they|it)\b"
    r"|without (?:my|me"
    r"|asking|confirm\w*|permission|approval|explicit|having)|außer wenn|wenn|falls|bevor|sauf si|si|avant|antes"
    r"|where possible|need to|have to|forget|hesitate|worry|necessarily)\b",
    re.IGNORECASE,
)
MINE = lazy_regex(
    r"\b(?:before|until|till|without|bevor|bis|ohne|avant|hasta|sin)\b[^\n]{0,30}\b(?:i|me|my|we|us|our|ich|mich"
    r"|mein\w*"
    r"|wir|je|moi|mon|yo|mi)\b",
    re.IGNORECASE,
)
"""A condition that the user fulfils."""
PHRASES = {
    phrase: word
    for line in (
        "contact=get in touch|reach out|write to|talk to|speak to",
        "browse=reach out to the internet|go online",
        "handover=hand over",
        "handover me=hand me",
        "install=pull in|bring in",
        "delete=get rid of|throw away|throw out",
        "commit=check in",
        "database=base de datos|bases de datos|base de données",
        "avoid=stay away from|stay out of|stay clear of|steer clear of|keep away from|keep out of|hands off",
        "avoid=keep your hands off|finger weg von|hände weg von|refrain from|steer away from|stay off|keep off",
        "avoid=lass die finger von|don't go near|do not go near",
        "nobody=no one",
        "never=under no circumstances|in no case|by no means|at no point|on no account|not ever",
        "never=it is forbidden to|it's forbidden to|it is prohibited to|it is not allowed to|under no condition",
        "never=it is not for you to|it's not for you to|it is not your job to|it's not your job to",
        "niemals=auf keinen fall|unter keinen umständen|es ist verboten",
        "jamais=en aucun cas|il est interdit de",
        "nunca=bajo ninguna circunstancia|en ningún caso|está prohibido",
        "tell=let anyone know",
        "please=whatever you do",
        "addressbook=address book|phone book|adressbuch|carnet d'adresses|libreta de direcciones|rubrica",
        "keep=look after",
        "preserve=hold on to|hang on to",
    )
    for word, phrases in (line.split("="),)
    for phrase in phrases.split("|")
}
"""Phrases that are read as one word."""
PHRASE = lazy_regex(rf"\b(?:{'|'.join(sorted(PHRASES, key=len, reverse=True))})\b", re.IGNORECASE)
NOT = word_set("not never")
CONTRAST = word_set("not never nicht niemals pas no non não nunca")
PREPOSITIONS = word_set(
    "in on at to for from with by of into above over before after during the a an my our any "
    "im in am an auf bei beim mit von vom zu zum zur den der die das dans en sur à chez avec le la les l el los las "
    "con de del a nel nella sul sulla da per no na em"
)
AVOID = word_set("spare avoid skip quit stop omit vermeide évite évitez evita evite avoiding omitting skipping")
WITHOUT = word_set("without ohne sans sin senza sem")
MODAL = word_set("must may should shall can could ca will wo need ought")
OPENERS = word_set(
    "please and but so also just you we kindly oh ok okay hey then bitte und aber por favor y pero et mais surtout "
    "e ma mas per favore though anyway better try sure careful rather take care to make be i'd did do would agent "
    "assistant de si that only still yet of all everything else above nur je to note important reminder ojo "
    "attention also "
    "one more thing now for hold on wait really absolutely strictly definitely preferably in any case all "
    "whatever happens todavía aún noch vorerst momento ahora ahorita encore ainda ancora could would"
)
FILL = word_set(
    "ever please just also even try to be get gets being start starting go going allowed permitted supposed under any "
    "circumstances let you me we by directly simply yourself actually really in order have has been ever using "
    "make making made do doing give giving take taking issue issuing process processing perform place put off out up "
    "on any way permit anyone anybody someone again accidentally il la le lo les los las se te me y en vous nous "
    "nos du "
    "wird werden bitte mehr"
)
LIGHT = word_set(
    "put hagas haga hacer haz hagan fais faites faire fare faccia faça mach mache machen make making do doing give "
    "giving take issue issuing process processing perform grant granting initiate place "
    "placing offer offering want need have"
)
PLACES = word_set(
    "code answer answers replies reply responses messages text summary output report it function message file there"
)
MENTAL = word_set(
    "worry hesitate forget be think assume care mind bother rush panic feel know believe understand remember see hear "
    "need want like expect wait ask get let guess happen work matter seem exist fail look stop apologize apologise "
    "afford exceed go have is are was were hurry trust confuse overthink overcomplicate mean only just hardcode "
    "give wanna wish provide make proceed engage accept follow respond"
)
TELLING = word_set(
    "is are was were does had fails failed fail crashes crash breaks broke broken works happens because why runs ist "
    "sind est sont es son has been shows appears got gets belongs belong gehört appartient pertenece"
)
SUBJECTS = word_set("you we i nothing nobody it this that they he she agents agent assistant du wir ihr sie tu vous")
ANY = word_set(
    "anything any anybody anyone nothing no none everything aucun aucune nada ningún ninguno ninguna nichts anywhere "
    "whatever niente nulla rien qualcosa algo"
)
GENERIC = word_set(
    "files data resources records rows things stuff code documents dateien daten fichiers données archivos "
    "ficheros datos file arquivos"
)
"""Words for things of all sorts."""
NEW = word_set("new additional extra other more neue neuen nouveau nouveaux nuevos")
NO_MATTER = word_set(
    "longer idea need problem worries sign trace luck result results error errors answer response record records match "
    "matches matter doubt way hurry rush one changes-needed"
)
"""Nouns that "no" describes rather than forbids."""
VAGUE = word_set("protect note full")
ONLY_IN = lazy_regex(
    r"\b(?:only|nur|uniquement|seulement|solo|sólo|soltanto|apenas) (?:in|on|to|from|dans|sur|en|à|auf|an|nel|em) "
    r"(?:the |la |le |el |der |die )?(\w{1,30}[_-][\w-]{1,30})\b",
    re.IGNORECASE,
)
"""A name that is allowed though it holds the word for what is forbidden: "not in orders, only in orders_test"."""
POLITE = lazy_regex(
    r"^(?:(?:could|can|would|will) you|könntest du|kannst du|peux-tu|pourrais-tu|podrías|puedes|puoi|potresti)\s"
    r"(?=(?:please |just |also |bitte |por favor )?(?:not|never|avoid|quit|stop|refrain|leave|keep|skip|spare|ne|no|non"
    r"|nicht|éviter|evitar|evitare|laisser|dejar)\b)",
    re.IGNORECASE,
)
"""A question that is a request."""
RELATIVE = lazy_regex(
    r"\b(allem|alles|everything|anything|whatever|all|tout|todo|tutto|those|dateien|files), ?(was|that|which|die|ce"
    r"|lo|ciò|whose)\b([^\n,;.]{1,40}, (?=in ruhe|alone|untouched|unangetastet|unverändert|tranquil))?",
    re.IGNORECASE,
)
"""A comma that parts no clauses: "everything, which"."""
LISTED = lazy_regex(
    r",(?= (?:[\w-]{1,30} ){0,2}[\w-]{1,30}(?:, [\w -]{1,60}){0,3},? (?:or|nor|oder|ou|ni) )", re.IGNORECASE
)
"""A comma that stands for "or", as in "comments, tests or logging"."""
THERE = lazy_regex(r"\b(?:there|dort|darin|là|allí|ahí|lì)\b", re.IGNORECASE)
THEIRS = lazy_regex(r"\b(?:its|their|these|those|deren|dessen|sus|leurs|ses)\b", re.IGNORECASE)
FOR_GOOD = lazy_regex(
    r"\b(?:(?:de (?:forma|manera) |in modo )?(?:definitiv\w{1,7}|permanent\w{0,6})|for good|forever|irrevocably"
    r"|endgültig|unwiderruflich|para siempre|pour toujours|per sempre)\b",
    re.IGNORECASE,
)
"""That something could not be fetched back."""
EXISTING = lazy_regex(r"\b(?:exist\w{0,4}|vorhanden\w{0,2}|bestehend\w{0,2}|already)\b", re.IGNORECASE)
BE = word_set("be get gets being been werden wird être ser sein")
OTHER_MODAL = word_set(
    "darf dürfen darfst soll sollen sollst wird werden kann können bitte doit doivent peut peuvent dois debe deben "
    "puede pueden debes deve devono deves devem pode podem può possono musst lässt lass lasst hay faut"
)
GERMAN_NOT = lazy_regex(r"\b(?:nicht|nie|niemals|nichts|niemand\w{0,2}|kein\w{0,2})\b", re.IGNORECASE)
ROMANCE_NOT = word_set("ne no non não nao nunca jamais jamás mai")
QUANTIFIED = word_set(
    "no aucun aucune ningún ninguna nessun nessuno nessuna nenhum nenhuma kein keine keinen keiner keinem"
)
STAYS = lazy_regex(
    r"\b(?:keep|leave|leaving|keeping|lass|lasst|laisse|laissez|deja|lascia)\s(?P<kept>[^\n]{2,60}?) (?:exactly "
    r"|completely |entirely |just |all )?"
    r"(?:unchanged|untouched|alone|intact|unmodified|as (?:it|they|is|are|he|she)\b|the same\b|where (?:it|they)\b|be\b"
    r"|the way|in ruhe|in peace|unangetastet|unverändert|tranquil\w*|tel\w* quel\w*|como est\w*|wie (?:sie|er|es)"
    r"|so wie"
    r"|out of (?:it|this|that|the)|alone\b|off\b|in peace|(?:open|closed|shut|locked|running|dark|armed|private"
    r"|hidden|on)$)"
    r"|^(?P<stays>[^\n]{2,60}?) (?:(?:must|should|has to|have to|needs? to|shall|is to|are to|will) (?:stay"
    r"|remain|be (?:kept|left)|survive)"
    r"|stays?|remains?|bleib\w{1,2}|lässt du|reste\w{0,2}|queda\w{0,2}|rest\w{2,3})\b"
    r"|\blet (?P<let>[^\n]{2,40}?) be$|^(?P<need>[^\n]{2,50}?) (?:we still need|is still needed|are still needed"
    r"|i still need)"
    r"|^(?:please |and |but |so |also |do )*(?:keep|preserve|retain|behalte) (?P<all>(?:all|every|each|both|the"
    r"|my|our|any|alle) [^\n]{2,60})$",
    re.IGNORECASE,
)
CLOSED = lazy_regex(
    r"^(?P<what>[^\n]{2,60}?),? (?:(?:has|have) no (?:place|business)|do(?:es)? not belong|(?:is|are|ist|sind|est"
    r"|sont|está|están|es|è|sono|has to be|have to be|must be|stays?|remains?|bleib\w{1,2}) (?:strictly |all "
    r"|absolutely |currently |completely )?(?:off[- ]?limits|"
    r"read[- ]only|taboo|tabu|tabou|frozen|out(?= |$)(?! of| for)|forbidden|prohibited|not allowed|not permitted"
    r"|banned|a no-go|no-go|locked|verboten"
    r"|interdite?s?|prohibid\w{1,2}|vietat\w|proibid\w{1,2}|eingefroren|gesperrt|not an option"
    r"|not ok(?:ay)?"
    r"|no option|not (?:your|the agent's|the assistant's) (?:job|business|task|call|decision)|not (?:for"
    r"|up to) you|not yours|out of the question|reserved for"
    r"|(?:only )?(?:made|done|handled|decided|given|granted|sent|approved|issued"
    r"|taken care of) (?:only )?by (?:people|humans|a human|the|me|us|our|someone|somebody|hand)|a matter for"
    r"|left to|(?:up to|on) (?:me|us|the)|(?:my|our|their|his|her) (?:job|business|task|decision)|aufgabe de[rs]"
    r"|chefsache|sacred|sacrosanct|untouchable|closed|none of your business))\b",
    re.IGNORECASE,
)
OUT = lazy_regex(
    r"\b(?:leave|leaving|keep|keeping) (?:out (?P<what>[^\n]{2,60})|(?P<out>[^\n]{2,40}?) (?:out|off|away from)\b)"
    r"|^(?P<unseen>[^\n]{2,50}?) (?:(?:must|may|should|can) not (?:appear|show up|occur|turn up|be (?:mentioned"
    r"|named|shown|listed|visible|included))"
    r"|no (?:pueden?|deben?) (?:aparecer|figurar|salir)|(?:dürfen|darf|sollen"
    r"|soll)(?: \w{2,12}){0,4} nicht (?:vorkommen|erscheinen|auftauchen|stehen)"
    r"|ne (?:doit|doivent|peut|peuvent) pas (?:apparaître|figurer))\b"
    r"|\b(?:say nothing|not a word|no word|nothing|keep quiet|keep silent|kein wort|pas un mot"
    r"|ni una palabra) (?:of|about|über|von|sur|sobre) (?P<hush>[^\n]{2,60})"
    r"|\b(?:need|must|should|may|shall|do) not (?:know|learn|find out|hear|notice|see|get|receive"
    r"|get wind)(?: (?:that|about|of|anything about))? (?P<secret>[^\n]{3,80})"
    r"|^(?P<silent>[^\n]{3,60}?) (?:(?:is|are|has|have|must|should|needs?)(?: to)?(?: (?:stay|remain|be kept))?"
    r"|stays?|remains?) (?:between us|among us|under wraps|confidential|secret|a secret|private|nobody's business"
    r"|none of (?:his|her|their) business)\b",
    re.IGNORECASE,
)
AT = lazy_regex(r"\s(?:in|on|of|from|with|and|und|et|y)\s")
ALL = lazy_regex(
    r"\b(?:any|all|every|each|überall|jede|n'importe|tou[st]|cualquier|tod[oa]|tutt|ovunque)", re.IGNORECASE
)
EXCEPT = lazy_regex(
    r"(?:\b(?:any\w*|all|every\w*|each|überall|alle[ms]?|jede\w?|n'importe \w+|tous?|toutes?|cualquier\w?|todos?"
    r"|todas?|tutt\w|ovunque|the rest)\b"
    r"[^\n,;.]{0,40}?\b(?:but|besides|menos)|\b(?:except|other than|apart from|aside from|sauf|hormis|außer"
    r"|bis auf|salvo|excepto|tranne|eccetto|exceto))"
    r" (?:for |at |in |from |with |to |chez |dans |à |bei |en |a )?(?P<what>(?!(?:if|when|where|that)\b)[^\n]{2,50})",
    re.IGNORECASE,
)
MYSELF = lazy_regex(
    r"\bi(?:'ll| will| want to| would like to|'d like to| prefer to|'d rather| am going to)\s(?P<verb>[^\n,.;]{3,60}?) "
    r"(?:myself|on my own)\b"
    r"|\b(?:leave|überlass|laisse|deja) (?:the )?(?P<left>\w{3,14}ing\b[^\n,.;]{0,40}?) to (?:me|us)\b",
    re.IGNORECASE,
)
"""Expressions for what somebody does himself, and leaves to nobody."""
LOOK = lazy_regex(
    r"(?:^|[,;:.(] ?)(?:please )?(?:strictly )?(?:read[- ]only|just look\b|look only|only (?:look|read|analy[sz]e"
    r"|inspect|diagnose|investigate)\b|look,? but do not touch|you have read access|read access only|view only"
    r"|no write access"
    r"|dry[- ]run only|select only|stick to select|nur (?:lesen|schauen|gucken)|solo lectura|lecture seule"
    r"|sola lettura|change nothing|nothing gets changed)",
    re.IGNORECASE,
)
_CHINESE_ACT_WORDS = (
    "restart=重启|停止|关闭 remove=删除|删 change=修改|更改|改动|改|碰|动 "
    "publish=推送|部署|发布 send=发送|发给|发|联系|通知 install=安装|装 "
    "commit=提交 buy=购买|买 pay=支付|付 cancel=取消 book=预订|订 "
    "open=打开 add=添加|加|创建|新建|新增 use=使用|用|提到|提"
)
CHINESE_ACTS = {
    word: act
    for line in _CHINESE_ACT_WORDS.split(" ")
    for act, words in (line.split("="),)
    for word in words.split("|")
}
_ACTS = "|".join(sorted(CHINESE_ACTS, key=len, reverse=True))
CHINESE = lazy_regex(
    r"(?:不要|不得|禁止|不能|不可以?|不准|不许|请勿|切勿|勿|别)(?:再|去|在|用|给|把|对|随意|擅自|直接|任何){0,3}"
    rf"(?P<before>[^。，,;；!！?？\s]{{0,8}}?)(?P<act>{_ACTS})(?P<what>[^。，,;；!！?？\s]{{0,16}})"
)
CHINESE_MORE = lazy_regex(rf"(?:、|或者?|和|及|与)({_ACTS})")
"""Further acts of the same clause."""
_CHINESE_THING_WORDS = (
    "测试=test 数据库=database 配置=config 文件=file 客户=customer 邮件=email "
    "依赖=dependency 包=package 主分支=main 迁移=migration "
    "日志=log 文档=docs 表=table 接口=api 生产=production 会议=meeting "
    "日程=calendar 事件=event 邮箱=email 账户=account 用户=user 密码=password "
    "订单=order 照片=photo 备份=backup 分支=branch 价格=price "
    "代码=code"
)
CHINESE_THINGS = dict(pair.split("=") for pair in _CHINESE_THING_WORDS.split(" "))
_CUES = (
    " own|weg |quit |stop |upper|ceiling|still need|not|never|no |none|keep|leave|stay|remain|"
    "refrain|avoid|skip|nicht|kein|nie|nunca|ne |n'|n’|only|limit|"
    "budget|spend|off|away|clear of|forbid|allowed|permitted|banned|sans |sin |senza |sem |dont|taboo|tabu|"
    "frozen|nobody|fewer|maxim|höchstens|most|不|禁止|勿|别|standard library|stdlib|lass|lässt|bleib|out|except|"
    "besides|sauf|außer|salvo|tranne|aucun|ningún|nessun|non |não |nadie|personne|nur |solo|seulement|secret|"
    "confidential|until|surviv|must be|under|below|exclusiv|uniquement|jamais|verboten|interdit|prohib|vietat|"
    "no-go|instead|else|up to|within|hors|queda|stick|confin|sacro|untouchable|isn|aren|myself|to me|"
    "between us|look|analy|but |tops|protected|nada|rien|hormis|bis auf|apart from|pas |invit|ausschl|always|"
    "immer|toujours|siempre|sempre|reserved|question|spare|above|over |packages|vanilla|pure |by people|"
    "by humans|by the|your|hier |read access|than|by hand|max |max.|au plus|como m|al massimo|just |rest"
)
CUES = tuple(_CUES.split("|"))
"""One of these is in any sentence that forbids something."""
NEGATIVE = lazy_regex(
    r"\b(?:not|never|no|nobody|nothing|without|nicht|kein\w*|nie|ohne|ne|pas|sans|non|nunca|sin|não|senza)\b"
    r"|n['’]t\b|不|别|勿",
    re.IGNORECASE,
)
