// Package tracing reports what teams do as OpenTelemetry traces, where the person asked for that by
// OpenTelemetry's own variables.
//
// # Authority
//
// [History] decides which spans a history has: their ids, names, times, attributes and links. It is
// a function of the records: the same history gives the same spans, in any process and at any time.
// [FromEnvironment] decides from the environment where they go. An [Exporter] follows the teams
// that it is told of, and sends each span when it has ended. It writes no record and holds no team
// up: it reads a history at the pace of the receiver.
//
//	records ──▶ History ──▶ ended spans ──▶ batch ──▶ POST, again after a pause ──▶ cursor on disk
//
// The OpenTelemetry SDK is not linked: it would slow the start of every command. The format is
// small and written here, as OTLP over HTTP in protobuf or JSON (opentelemetry-proto v1.9.0).
//
// # Conventions
//
// Names and attributes follow the semantic conventions for GenAI agent spans, in the repository
// open-telemetry/semantic-conventions-genai, release v0.1.0, which are in development. A team is
// the operation invoke_workflow; since v0.1.0 its name is gen_ai.agent.name, and
// gen_ai.workflow.name of earlier versions is sent too. Attributes that the conventions do not have
// begin with cadre.
//
// # Guarantees
//
//   - Nothing is sent unless the person set an endpoint or the exporter, and nothing to any other
//     address. Redirects are not followed.
//   - A span that was sent is not sent again, also after a restart: the cursor of each team says up to
//     which record all spans are sent. A process that dies between sending and saving the cursor sends
//     at most one batch of a team again, with the same ids, by which receivers recognise it.
//   - A receiver that is down, slow or busy delays spans and loses none: the history has them, until
//     its team is removed. One that refuses a batch for good loses that batch, as OTLP demands, and the
//     person is told once.
//   - Memory is bounded for each team by its state and one batch.
//   - Texts of agents are short, valid UTF-8 on one line, and likely secrets in them are replaced. What
//     members write to each other, prompts, plans, inputs of tools and results are never sent.
package tracing
