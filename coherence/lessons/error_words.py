"""Tables of the words of error messages: of the cause, of codes, of kinds of things, and words that are no names."""

from __future__ import annotations

import re

from coherence.core.lazy import lazy_regex
from coherence.core.words import phrases, word_set

TELLING = phrases(
    "cannot; can't; could not; couldn't; unable; denied; refused; rejected; timed out; timeout; not found; no such; "
    "not exist; invalid; illegal; unexpected; undefined; unknown; unresolved; unrecognized; not recognized; "
    "unsupported; not supported; missing; panic; fatal; conflict; not allowed; forbidden; unauthorized; exceeded; "
    "out of; too many; too large; too long; mismatch; violates; duplicate; deadlock; overflow; segmentation; "
    "killed; corrupt; not a ; no module; not installed; incompatible; unreachable; not in ; no space; reset by; "
    "in use; is not ; does not; doesn't; has no ; no matching; not match; not permitted; expired; blocked; "
    "refusing; insufficient; ambiguous; unsatisfi; too low; too small; too old; wrong; undeclared; not available; "
    "not used; not enough; not declared; not defined; uninitialized; not authorized"
)
"""Lower-case parts of lines that say what went wrong."""

VAGUE = phrases(
    "error; fail; exception; already; must; abort; expected; disabled; unused; required; not; doesn’t; won't; bad; "
    "problem"
)
"""Lower-case parts of lines that say that something went wrong, but hardly what."""

EXCEPTION_NAME = (
    r"(?:[A-Za-z_$][\w$]{0,80}(?:\.|::|\\|/)){0,12}[A-Z][\w$]{0,100}?"
    r"(?:Error|Exception|Warning|Fault|Interrupt|Exit|Timeout|NotFound|Failure|Failed|Panic|DoesNotExist"
    r"|Overflow|Iteration|Mismatch|Denied|NotReady|Exceeded|Unavailable|Conflict|Violation|Unauthorized|Forbidden)"
)
"""Regular expression of the name of an exception's class, qualified or not."""

CODE_PARTS = lazy_regex(
    r"error|exception|fail|denied|not_?found|invalid|refused|exceed|conflict|forbidden|missing|unknown|unavailable|limit"
    r"|unsupported|mismatch|timeout|killed|back_?off",
    re.IGNORECASE,
)
"""Parts of compound words that say themselves what went wrong: these words are codes and no names."""

KINDS = word_set(
    "alias argument arguments attribute binary branch bucket cluster codec collection column command constraint "
    "container context cookie crate database dependency deployment device distribution domain encoding endpoint "
    "entity event executable extension field fixture flag formula function gem group header host hostname image "
    "import index class directory enum file identifier interface job key label library locale macro member method "
    "model module namespace network node option package parameter parameters partition plugin pod pods preset profile "
    "program project property provider queue recipe ref repo reference region relation remote repository requirement "
    "resource role route rule schema scheme script secret sequence service session shell stage struct subcommand "
    "symbol table tag target task template type tool topic trait unit user username variable view volume workspace"
)
"""Nouns after which the thing's name stands."""

INTRODUCING = word_set(
    "named called undefined undeclared unresolved unknown lookup unrecognized reference undefined-variable"
)
"""Words after which a name stands even without a noun."""

ORDINARY = word_set(
    "runs starts fails works "
    "a about above access across active after again against all allowed already also although an and another any app "
    "application are array as assertion at attempt attempted attribute authentication available aware bad be because "
    "been before being below between block body both but by call called calls can cannot case cast change changes "
    "channel character check child class client closed code command commit compatible connect connection contain "
    "contains content context copy correct could count create created credentials current currently daemon data "
    "database declaration declared default defined definition denied depends destination did different directory disk "
    "does done down due during each either else empty end enough entries entry environment error errors every "
    "exceeded exceeds execute executed exist existing exists exit exited expected expects expression external fail "
    "failed fails failure false fatal fetch field file files first float for format found free from function general "
    "generated get given go got group had handle has have header here host identity if implemented in incompatible "
    "incorrect index info information initialized inner input inside install installed instance instead int integer "
    "internal invalid is it item items its key keys killed kind known larger last least left length less level lib "
    "library like limit limits line lines link list load local located location lock locked long lookup lost "
    "make manager many map match matches matching maximum may maybe memory message method missing mode model module "
    "more most must name named names need needed needs negative network never new no node non none nor not nothing "
    "null number object occurred of off on one only open operation operator option or order other out outer output "
    "outside over own package page parameter parent parse parsed part pass passed password path pattern pending "
    "permission permissions permitted please point port position positional possible present previous private process "
    "project promise properties property protocol provide provided provider public query raised range read reason "
    "received recipe refused registered registry rejected remote remove request requested require required "
    "requirement requirements requires reset resolve resolved resource resources response result return returned "
    "returns root row running runtime same satisfied schema scope script see self send sent server session set shared "
    "should signal signature since single size so some source space specified stack start started state statement "
    "static status stream string style such support supported sure symbol syntax system table take takes tag target "
    "task template test tests than that the their them then there these they this thread timeout timed to token too "
    "tool top total try trying two type types unable unavailable undefined unexpected unique unit unknown unreachable "
    "unresolved unsupported until unused up update upper url use used user using valid provides supports loader "
    "resolution specifier specification validation value values variable version versions via violates want was we "
    "were when where which while will with within without wrong write you your zero true bytes byte char bool str "
    "signed unsigned constructor destructor const import imports imported export exports exported declare unbound "
    "mismatch mismatched native interpreter literal aborted cancelled canceled expired inactive ready duplicate "
    "verification authorization authentication details detail definitions lengths certificate "
    "loop callback component mapping deadline coroutine iterator closure keyword literal operand prototype annotation "
    "assignment initializer identifier configuration "
    "conflict updates upstream work tree don doesn isn wasn couldn won"
)
"""Words that are no names wherever they stand."""

EXTENSIONS = word_set(
    "bak bash bat bin bmp c cc cfg cjs clj cmake cmd conf cpp crt cs csproj css csv cts cxx dart db dll dylib el env "
    "erl ex exe exs f90 fs gif go gradle graphql gz h hcl hpp hs htm html ico inc ini ipynb jar java jl jpeg jpg js "
    "json jsonl jsx kt kts less lock log lua map md mjs ml mp3 mp4 mts node npy npz onnx parquet pdf pem php pkl pl "
    "pm png prisma properties proto ps1 pt pth py pyc pyd pyi pyx rb rs rst sass sbt scala scss service sh sln so "
    "sock sol sql sqlite sqlite3 svelte svg swift tar tf tfvars tgz tmp toml ts tsx txt vcxproj vue wasm wav webp whl "
    "xlsx xml yaml yml zig zip"
)
"""File-name endings by which a path is known without a slash."""

ERRNO_TEXTS = phrases(
    "no such file; not a directory; is a directory; file exists; permission denied; operation not permitted; "
    "bad interpreter; cannot execute; exec format error; text file busy; read-only file system; "
    "directory not empty; file name too long; device or resource busy; no such device"
)
"""Messages of systems about files, in lower case: a name in such a line is a path."""

WRAPPERS = phrases(
    "error collecting; exit code; exit status; exited with; non-zero; nonzero; process finished; a complete log; "
    "command failed; lifecycle; aborting due to; could not compile; build failed; *** [; build stopped; "
    "application failed to start; application run failed; execution failed for task; while importing test module; "
    "short test summary; interrupted: ; during collection; errors generated; error generated; "
    "compilation terminated; linker command failed; originates from a subprocess; subprocess-exited; "
    "metadata-generation-failed; failed to solve; failed to push some; tests failed; test failed; "
    "failed to compile; failed to load command; failed at the; probably not a problem with npm; for help; "
    "for more information; does not currently take into account; problems (; problem (; finished with status; "
    "process exited; failed with result; restart counter; aborting on; returned exit; job failed; full stack trace; "
    "full debug log; see above for; return code; a problem occurred; error occurred:; problem with; went wrong; "
    "error executing command; successfully; could not be reused; checking for ; installing it now"
)
"""Lower-case parts of lines that only say that something failed, and never why."""
