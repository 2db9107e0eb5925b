package tracing

// These are the kinds of spans, the values of cadre.span.
const (
	kindTeam          = "team"
	kindSession       = "session"
	kindAttempt       = "attempt"
	kindPlan          = "plan"
	kindPermission    = "permission"
	kindHook          = "hook"
	kindConsolidation = "consolidation"
	kindCheck         = "check"
)

// teamEnded is the outcome of what was still open when the team ended.
const teamEnded = "team_ended"

// kind describes a kind of span for people. docs/tracing.md has the table.
type kind struct {
	Kind       string   // value of cadre.span
	Name       string   // name of the span
	Lasts      string   // from when to when
	In         string   // parent
	Attributes []string // that such a span can have, besides cadre.span
	Outcomes   []string // values of cadre.outcome
	Failures   []string // values of cadre.outcome with which it failed, and of error.type
}

// kinds lists the kinds of spans.
var kinds = []kind{
	{kindTeam, "invoke_workflow TEAM", "from the creation of the team until it is complete, aborted or removed",
		"none",
		[]string{"gen_ai.operation.name", "gen_ai.agent.name", "gen_ai.workflow.name", "cadre.outcome", "cadre.reason",
			"cadre.cost_usd", "error.type", usageInput, usageOutput, usageCacheRead, usageCacheWrite},
		[]string{"complete", "removed"}, []string{"aborted"}},
	{kindSession, "invoke_agent MEMBER", "from when a host takes the member until its session has ended", kindTeam,
		[]string{"gen_ai.operation.name", "gen_ai.agent.name", "gen_ai.provider.name", "gen_ai.request.model",
			"gen_ai.conversation.id", "cadre.agent", "cadre.role", "cadre.session", "cadre.outcome", "cadre.reason",
			"cadre.cost_usd", "error.type", usageInput, usageOutput, usageCacheRead, usageCacheWrite},
		[]string{"stopped", "detached", teamEnded}, []string{"failed"}},
	{kindAttempt, "invoke_agent MEMBER task", "from the claim of the task until it is completed, failed or taken " +
		"from the member", kindTeam,
		[]string{"gen_ai.operation.name", "gen_ai.agent.name", "gen_ai.provider.name", "gen_ai.request.model",
			"cadre.agent", "cadre.role", "cadre.task.id", "cadre.task.name", "cadre.task.subject", "cadre.task.attempt",
			"cadre.outcome", "cadre.reason", "cadre.cost_usd", "error.type", usageInput, usageOutput, usageCacheRead,
			usageCacheWrite},
		[]string{"completed", "released", "reassigned", "deleted", "rolled_back", teamEnded}, []string{"failed"}},
	{kindPlan, "plan MEMBER", "from the submission of a plan until its answer", kindSession,
		[]string{"gen_ai.operation.name", "gen_ai.agent.name", "cadre.outcome", "cadre.by"},
		[]string{"approved", "rejected", "timed_out", "replaced", teamEnded}, nil},
	{kindPermission, "permission TOOL", "from a request for permission until its answer", kindSession,
		[]string{"gen_ai.agent.name", "gen_ai.tool.name", "cadre.outcome", "cadre.by"},
		[]string{"allowed", "denied", "timed_out", "dropped", teamEnded}, nil},
	{kindHook, "hook EVENT", "no time: when a hook rejected something", "attempt, else session, else team",
		[]string{"gen_ai.agent.name", "cadre.hook.event", "cadre.hook.rejections", "cadre.outcome", "cadre.reason"},
		[]string{"rejected"}, nil},
	{kindConsolidation, "consolidation", "from the start of a consolidation until it is done or abandoned", kindTeam,
		[]string{"cadre.consolidation.attempt", "cadre.outcome", "cadre.reason", "error.type"},
		[]string{"done", teamEnded}, []string{"abandoned"}},
	{kindCheck, "check NAME", "one run of a check", "consolidation",
		[]string{"cadre.check", "cadre.outcome", "error.type"}, []string{"passed"}, []string{"failed"}},
}

// The attributes of usage. By the conventions, the tokens that a model read include those from a
// cache and those that were written to one.
const (
	usageInput      = "gen_ai.usage.input_tokens"
	usageOutput     = "gen_ai.usage.output_tokens"
	usageCacheRead  = "gen_ai.usage.cache_read.input_tokens"
	usageCacheWrite = "gen_ai.usage.cache_creation.input_tokens"
)

// linkKind describes a kind of link for people, by the value of its cadre.link.
type linkKind struct{ Link, From, To string }

// linkKinds lists the kinds of links.
var linkKinds = []linkKind{
	{linkSession, "attempt", "the session that works on the attempt"},
	{linkDependency, "attempt", "the attempt that completed a task which this one waited for: `cadre.task.id`"},
	{linkMessage, "session", "the session that sent a message which was delivered to this one: `cadre.message.id`, " +
		"`cadre.message.type`"},
}

const (
	linkSession    = "session"
	linkDependency = "dependency"
	linkMessage    = "message"
)
