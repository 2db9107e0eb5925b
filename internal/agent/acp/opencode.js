// Tells cadre, on standard error, what opencode says of errors to its plugins and not to the client of its protocol.
const tell = (trouble) => process.stderr.write("\n@cadre-trouble " + JSON.stringify(trouble) + "\n")
export const CadreTrouble = async () => ({
  event: async ({ event }) => {
    const p = event.properties ?? {}
    if (event.type === "session.status" && p.status?.type === "retry")
      tell({ session: p.sessionID, retry: p.status.attempt, text: p.status.message })
    if (event.type === "session.error" && p.error)
      tell({ session: p.sessionID, status: p.error.data?.statusCode, text: p.error.data?.message ?? p.error.name })
  },
})
