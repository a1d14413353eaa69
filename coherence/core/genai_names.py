"""Attribute names of telemetry about models and agents: those we write, and all that we read, in one table.

The names that we write are those of the OpenTelemetry conventions for GenAI in :data:`SEMCONV_VERSION`, pinned here as
texts: the constants of OpenTelemetry's own package move between its versions. A tuple holds the names of one thing, the
current one first, then older ones and those of OpenLLMetry (``traceloop.*``), OpenInference (``llm.*``), Langfuse and
Claude Code. Names of our own stand under ``coherence.``.
"""

from __future__ import annotations

SEMCONV_VERSION = "1.41.0"
"""Version of the OpenTelemetry semantic conventions that the written names are taken from."""

SCHEMA_URL = f"https://opentelemetry.io/schemas/{SEMCONV_VERSION}"
"""Address that names this version in what is exported."""

SCOPE = "coherence"
"""Instrumentation scope of our own spans: their chats hold only the messages that are new."""

# What spans and metrics are about.
OPERATION = "gen_ai.operation.name"
PROVIDER = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")
CONVERSATION = (
    "gen_ai.conversation.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
    "session.id",
)
AGENT = ("gen_ai.agent.name", "agent.name", "llm.agent.name", "agent_id")
REQUEST_MODEL = ("gen_ai.request.model", "llm.model_name", "langfuse.observation.model.name", "model")
RESPONSE_MODEL = "gen_ai.response.model"
RESPONSE_ID = "gen_ai.response.id"
ERROR_TYPE = "error.type"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 - the name of an attribute

# Kinds of spans.
CHAT, TOOL, AGENT_RUN = "chat", "execute_tool", "invoke_agent"
PROMPT = "prompt"
"""Kind of a record that only tells what the user asked."""
OPERATIONS = {
    "chat": CHAT,
    "generate_content": CHAT,
    "text_completion": CHAT,
    "execute_tool": TOOL,
    "invoke_agent": AGENT_RUN,
    "invoke_workflow": AGENT_RUN,
}
"""Value of :data:`OPERATION` -> kind."""
KIND_ATTRIBUTES = ("openinference.span.kind", "traceloop.span.kind", "langfuse.observation.type", "llm.request.type")
"""Attributes by which other instrumentations name the kind of a span."""
KINDS = {
    "llm": CHAT,
    "generation": CHAT,
    "chat": CHAT,
    "completion": CHAT,
    "tool": TOOL,
    "agent": AGENT_RUN,
    "workflow": AGENT_RUN,
}
"""Value of one of them, in lower case -> kind."""
CLAUDE_CODE = {
    "claude_code.llm_request": CHAT,
    "claude_code.api_request": CHAT,
    "claude_code.api_error": CHAT,
    "claude_code.assistant_response": CHAT,
    "claude_code.tool": TOOL,
    "claude_code.tool_result": TOOL,
    "claude_code.interaction": AGENT_RUN,
    "claude_code.user_prompt": PROMPT,
}
"""Name of a span or an event of Claude Code -> kind."""
CLAUDE_CODE_EVENTS = (
    "claude_code.user_prompt",
    "claude_code.api_request",
    "claude_code.api_error",
    "claude_code.assistant_response",
    "claude_code.tool_result",
)
"""Those of them that come as log records; they tell more than its spans."""
CLAUDE_CODE_EXECUTION = "claude_code.tool.execution"
"""Its span of a tool's work, which tells the error."""
CLAUDE_CODE_FAILURES = ("claude_code.api_error",)
CLAUDE_CODE_REQUEST = "request_id"
CLAUDE_CODE_ARGUMENTS = {"full_command": "command", "file_path": "file_path"}
"""Attribute of its spans of tools -> argument of the call."""

# What models read and wrote.
SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
INDEXED_INPUT = ("gen_ai.prompt", "llm.prompts", "llm.input_messages")
INDEXED_OUTPUT = ("gen_ai.completion", "llm.completions", "llm.output_messages")
"""Beginnings of names with an index, such as ``gen_ai.prompt.0.content``."""
ANY_INPUT = (
    "langfuse.observation.input",
    "gen_ai.prompt",
    "input.value",
    "traceloop.entity.input",
    "langfuse.trace.input",
    "user_prompt",
    "prompt",
)
ANY_OUTPUT = (
    "langfuse.observation.output",
    "gen_ai.completion",
    "output.value",
    "traceloop.entity.output",
    "langfuse.trace.output",
    "response",
)
"""Attributes that hold messages, or one text, in whatever form the instrumentation likes."""
MESSAGE_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "choice",
}
"""Events of one message each, as conventions before 1.37 have them -> who speaks."""

# Tools.
TOOL_NAME = ("gen_ai.tool.name", "tool.name", "tool_name", "traceloop.entity.name")
TOOL_CALL_ID = ("gen_ai.tool.call.id", "tool_call.id", "tool_use_id")
TOOL_ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "input.value",
    "traceloop.entity.input",
    "langfuse.observation.input",
    "tool_input",
    "tool_parameters",
)
TOOL_RESULT = ("gen_ai.tool.call.result", "output.value", "traceloop.entity.output", "langfuse.observation.output")

# Amounts.
INPUT_TOKENS = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "llm.usage.prompt_tokens",
)
OUTPUT_TOKENS = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "llm.usage.completion_tokens",
)
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CLAUDE_CODE_INPUT_TOKENS = ("input_tokens", "cache_read_tokens", "cache_creation_tokens")
"""Attributes of Claude Code that together are the tokens that the model read."""
CLAUDE_CODE_OUTPUT_TOKENS = "output_tokens"
COST = ("coherence.cost_usd", "gen_ai.usage.cost", "llm.cost.total", "cost_usd")
LANGFUSE_USAGE = "langfuse.observation.usage_details"
LANGFUSE_COST = "langfuse.observation.cost_details"
LANGFUSE_LEVEL = "langfuse.observation.level"

# Judgements.
EVALUATION = "gen_ai.evaluation.result"
EVALUATION_NAME = "gen_ai.evaluation.name"
EVALUATION_SCORE = "gen_ai.evaluation.score.value"
EVALUATION_LABEL = "gen_ai.evaluation.score.label"
EVALUATION_WHY = "gen_ai.evaluation.explanation"

# Metrics.
TOKEN_USAGE = "gen_ai.client.token.usage"  # noqa: S105 - the name of a metric
OPERATION_DURATION = "gen_ai.client.operation.duration"
INDEX_METRIC = "coherence.index"
PRESSURE_METRIC = "coherence.pressure"
DECISIONS_METRIC = "coherence.decisions"

# Our own.
OWN_GOAL = "coherence.goal"
OWN_MEMORY = "coherence.memory"
OWN_DECISION = "coherence.decision"
OWN_FIRING = "coherence.firing"
OWN_OUTCOME = "coherence.outcome"
OWN_FAULT = "coherence.fault"
