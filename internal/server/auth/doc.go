// Package auth decides who sends a request to the server, and what the request may do.
//
// # Authority
//
// It identifies the process at the other end of a connection, checks tokens and cookies, and
// refuses what a foreign web page sends. Package access says what a caller may do in a team, the
// core what an actor may.
//
// # Who calls
//
//	a connection ──unix socket──▶ the peer's uid is ours, and it is not a browser? ──no──▶ 403
//	      │                          │ yes
//	      │                          ▼
//	      │                the peer's process ──below a running host──▶ that member or check, whatever token it shows
//	      │                          │ no
//	      │                          └──▶ the user, with the role admin
//	      │
//	      └──TCP──▶ Host and Origin are exact? ──no──▶ 403
//	                    │ yes
//	                    ▼
//	           token or cookie is known? ──no──▶ 401, later the more there were
//	                    │ yes
//	                    ▼
//	           the processes that have the other end ──below a host──▶ that member or check
//	                    │           │
//	                    │           ├─ on this machine, but closed or not to be seen ──▶ 403
//	                    │           └─ on another machine, or the system shows none: macOS
//	                    │ not below a host             │
//	                    └──▶ the user, with the role of the token
//
// # Guarantees
//
//   - A process in a member's session acts as that member, on the socket and with a token that it has
//     read. This holds as far as [proc.AncestryOf] can tell, and over TCP only on Linux. It cannot
//     become the user by a connection that it closes, passes on or hides.
//   - A token is compared in constant time, and is never in a URL. A code is: it is used once, within
//     a minute, and becomes a cookie that scripts cannot read and that no other site can use.
//   - A token file that others can read or replace is not used.
//   - A removed token ends everything that came with it: requests, codes, cookies, and within
//     [recheck] the streams that are open.
//   - A page of another origin, also of another port on this machine, gets no data and changes
//     nothing; nor does one whose name resolves to this machine (DNS rebinding).
//   - Whoever sends wrong tokens holds up only itself.
//
// docs/server-security.md says it for users, with what the systems do not show.
package auth
