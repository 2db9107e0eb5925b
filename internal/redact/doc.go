// Package redact replaces likely secrets in what leaves the machine.
//
// # Authority
//
// It decides what counts as a secret in a text: a token that is known by its shape, a value behind
// a word for a secret, a password in a URL, a private key. Which texts are looked at is decided by
// whoever writes them.
//
// The shapes of some two hundred services are the rules of gitleaks (gitleaks.toml, unchanged, under
// the licence in gitleaks.LICENSE). To update them, replace both files and the version and hash in
// rules.go. Two kinds of rules are not used: those for files of certain names, and the generic one,
// for which redact.go has patterns that also know how people write of secrets.
//
// # Guarantees
//
//   - A secret is replaced by [Mark], and the text around it stays.
//   - Redacting a text again changes nothing.
//   - Nothing is compiled, and no rule is read, before a text needs it.
//   - Of two mistakes it prefers to replace what is not a secret. It finds every sample of gitleaks'
//     own tests for the rules that it uses (6,305); without the rules it found 4,624 of them.
package redact
