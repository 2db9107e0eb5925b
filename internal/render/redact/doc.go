// Package redact replaces likely secrets in texts that leave the machine.
//
// # Authority
//
// It decides what counts as a secret in a text. That is a token with a known shape, a value after a
// word such as "password", a password in a URL, or a private key. The caller decides which texts
// are redacted.
//
// The token shapes of some two hundred services are the rules of gitleaks (gitleaks.toml,
// unchanged, under the licence in gitleaks.LICENSE). To update them, replace both files and the
// version and hash in rules.go. Two kinds of rules are not used: rules for files with certain
// names, and the generic rule. For the latter, redact.go has patterns of its own, which also match
// secrets in prose.
//
// # Guarantees
//
//   - A secret is replaced by [Mark]. The text around it stays.
//   - Redacting a text again changes nothing.
//   - No rule is read and no expression is compiled before a text needs it.
//   - In doubt it redacts: a harmless value may be replaced. It finds every sample in gitleaks' own
//     tests for the rules that it uses (6,305). Without those rules it found 4,624 of them.
package redact
