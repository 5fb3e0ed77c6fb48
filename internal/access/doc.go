// Package access says who a client is and what it may do. It knows no sockets and
// no protocol: the server shows it what a client brings, and asks it before a
// command is executed.
//
//	policy, err := access.New(access.Config{Identities: ..., Rules: ...})
//	id, ok := policy.ByToken(token)
//	if ok && id.May(access.Put, "mail") { ... }
//
// An identity is recognised by a token, by the common name or a DNS name of a
// client certificate, by the user at the other end of a unix socket, or by the
// network that a client comes from. If a client brings several, the strongest
// counts, in that order.
//
// A rule gives identities rights on tubes. What no rule gives is refused. If there are
// no rules everybody who is let in may do everything: so a server with passwords
// and nothing else needs none.
//
// # Tokens
//
// Only SHA-256 sums of tokens are kept. A fast hash is enough, because NewToken
// makes tokens of 256 random bits, which nobody can guess; and a token that a
// person has chosen must have MinToken bytes. A token is found by its sum, so the
// time that takes says nothing about the tokens that there are.
//
// A Policy is never changed: to reload the configuration is to make another.
// All methods may be called by any goroutine.
package access
