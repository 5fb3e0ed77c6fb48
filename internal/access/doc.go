// Package access decides who a client is, what it may do, and how much of it. It knows
// no sockets and no protocol: the server and the JSON API pass the evidence that a client
// has given, and ask before they execute anything.
//
//	policy, err := access.New(access.Config{Identities: ..., Rules: ...})
//	control, err := access.NewControl(policy, listeners)
//	id, known := control.Identify(access.Evidence{Address: addr, Certificate: cert})
//	if id.Meets(rights.Put.On(rights.NamedTube), "mail") { ... }
//
// A Control is what all listeners of a server share: the policy and the limits in force.
// Both can be replaced while the server runs. Terms are the additional requirements of a
// single listener.
//
// # Identities and rules
//
// An identity is recognised by a token, by the common name or a DNS name of a
// client certificate, by the user at the other end of a unix socket, or by the
// network that a client comes from. If a client shows several, the strongest
// counts, in that order; a client with an unknown token is not identified, whatever else it
// shows. A client without an identity is Nobody; rules may give rights to Nobody, too.
//
// A rule gives identities rights on tubes. Everything that no rule allows is refused. If
// there are no rules, every client that is admitted may do everything: so a server that
// only wants passwords needs no rules. A rule must name its tubes; "*" means all.
//
// Identity.Meets is the only place where rights are compared. The tables of commands and
// of operations of the API say which rights each of them needs, in the terms of package
// rights.
//
// # Limits
//
// Limits bound the connections of an address.
//
// # Tokens
//
// Only SHA-256 sums of tokens are kept. A fast hash is enough, because NewToken
// makes tokens of 256 random bits, which nobody can guess; and a token that a
// person has chosen must have MinToken bytes. A token is found by its sum, so the
// time that takes says nothing about the tokens that there are.
//
// A Policy is never changed: to reload the configuration is to make another.
// All methods may be called by any goroutine. Start reading with Control in control.go.
package access
