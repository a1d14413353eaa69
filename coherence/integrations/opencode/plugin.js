// Hands what the sessions of OpenCode do to the daemon of coherence, and its answers back.
// `coherence init --host opencode` has written this file; `--remove` takes it away.
import { spawn } from "node:child_process"

const COMMAND = ["COMMAND"]
const WAIT_MS = 5000

// Run the hook on one event. Whatever goes wrong, the agent goes on.
const ask = (payload) =>
  new Promise((resolve) => {
    let said = ""
    const child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => child.kill(), WAIT_MS)
    const end = () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(said || "{}"))
      } catch {
        resolve({})
      }
    }
    child.on("error", end)
    child.on("close", end)
    child.stdin.on("error", () => {})
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (part) => (said += part))
    child.stdin.end(JSON.stringify(payload))
  })

export const Coherence = async ({ directory }) => {
  const parents = new Map() // session of a subagent -> the session that has started it
  const kinds = new Map() // session of a subagent -> name of its kind
  const words = new Map() // message of the model -> kind of its words
  const notes = new Map() // session -> what goes with its next event
  const refused = new Set() // calls
  const added = new Map() // call that has failed -> what its error does not say
  const unseen = new Map() // text for the model that was in no request yet -> its session
  let turn = Promise.resolve()

  const top = (session) => (parents.has(session) ? top(parents.get(session)) : session)
  const who = (session) => (parents.has(session) ? { agent_id: session, agent_type: kinds.get(session) } : {})
  const note = (session, fields) => {
    const all = notes.get(top(session)) ?? []
    notes.set(top(session), [...all, { ...who(session), ...fields }])
  }
  // One event after the other, so that the record has the order in which things happened.
  const tell = (event, session, fields) => {
    const said = notes.get(top(session)) ?? []
    notes.delete(top(session))
    const about = { hook_event_name: event, session_id: top(session), cwd: directory, ...who(session) }
    turn = turn.then(() => ask({ ...about, ...fields, notes: said }))
    return turn
  }
  const hear = (session, answer) => {
    if (answer.context) unseen.set(answer.context, session)
    return answer.context
  }

  const ended = async (session, part) => {
    if (refused.delete(part.callID)) return
    const about = { tool_name: part.tool, call_id: part.callID, error: part.state.error }
    const text = hear(session, await tell("tool.failed", session, about))
    if (text) added.set(part.callID, text)
  }

  return {
    event: async ({ event: { type, properties } }) => {
      const { sessionID: session, part, info } = properties
      if (type === "session.created" && info.parentID) {
        parents.set(info.id, info.parentID)
        kinds.set(info.id, info.agent ?? "agent")
      } else if (type === "message.updated" && info.role === "assistant") {
        words.set(info.id, info.summary ? "compaction" : "text")
      } else if (type === "message.part.updated" && part.type === "text" && part.time?.end) {
        const kind = words.get(part.messageID) // none: a text that the client says for the user
        if (kind) note(session, { kind, id: part.id, text: part.text })
      } else if (type === "message.part.updated" && part.type === "step-finish") {
        note(session, { kind: "usage", id: part.id, tokens: part.tokens, cost: part.cost })
      } else if (type === "message.part.updated" && part.type === "tool" && part.state.status === "error") {
        await ended(session, part)
      } else if (type === "session.error" && session) {
        note(session, { kind: "error", text: properties.error?.data?.message ?? properties.error?.name })
      } else if (type === "session.idle") {
        await tell(type, session, {})
      }
    },
    "chat.message": async ({ sessionID }, { message, parts }) => {
      const prompt = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
      await tell("chat.message", sessionID, { prompt: prompt.join("\n"), model: message.model?.modelID })
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      const about = { tool_name: tool, tool_input: args, call_id: callID }
      const answer = await tell("tool.execute.before", sessionID, about)
      if (answer.decision === "deny") {
        refused.add(callID)
        throw new Error(answer.reason)
      }
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, result) => {
      const about = { tool_name: tool, tool_input: args, call_id: callID, exit: result.metadata?.exit }
      const said = { output: result.output ?? result.content }
      const text = hear(sessionID, await tell("tool.execute.after", sessionID, { ...about, ...said }))
      if (text && Array.isArray(result.content)) result.content.push({ type: "text", text })
      else if (text) result.output = `${result.output}\n\n${text}`
    },
    "experimental.chat.messages.transform": async (_, { messages }) => {
      await turn
      for (const part of messages.flatMap((message) => message.parts).filter((part) => part.type === "tool")) {
        const text = added.get(part.callID)
        if (text && part.state.status === "error" && !part.state.error.endsWith(text)) {
          part.state.error = `${part.state.error}\n\n${text}`
        }
        for (const [text, session] of unseen) {
          if (!(part.state.output ?? part.state.error ?? "").endsWith(text)) continue
          unseen.delete(text)
          note(session, { kind: "shown", text })
        }
      }
    },
  }
}
