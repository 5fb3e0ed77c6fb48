// Package access identifies clients. It decides which operations they can use and how
// many connections they can open. It handles neither sockets nor the protocol: the server
// and the JSON API pass it the credentials of a client, and query it before they execute
// a command.
//
//	policy, err := access.New(access.Config{Identities: ..., Rules: ...})
//	control, err := access.NewControl(policy, listeners)
//	id, known := control.Identify(access.Credentials{Address: addr, Certificate: cert})
//	if id.Meets(rights.Put.On(rights.NamedTube), "mail") { ... }
//
// All listeners of a server share a Control, which contains the policy and the limits in
// force. Both can be replaced while the server runs. A ListenerPolicy contains the
// additional requirements of a single listener.
//
// # Identities and rules
//
// A client is identified by a token, by the common name or a DNS name of its certificate,
// by the user at the other end of a Unix socket, or by its network. If it presents
// several, the first in that order counts. A client with an invalid token is not
// identified, regardless of its other credentials. A client without an identity is
// Nobody; rules can grant rights to Nobody.
//
// A rule grants identities rights on tubes. Operations that no rule allows are refused.
// If there are no rules, every admitted client has all rights, so that a server that only
// authenticates needs no rules. A rule must name its tubes; "*" means all.
//
// Only Identity.Meets compares rights. The tables of commands and of API operations
// define the rights that each of them requires, in the terms of package rights.
//
// # Tokens
//
// Only SHA-256 hashes of tokens are stored. A fast hash is enough: tokens from NewToken
// have 256 random bits, and other tokens must have at least MinToken bytes. Tokens are
// looked up by hash, so the time of a lookup reveals nothing about valid tokens.
//
// A Policy is immutable: a reload of the configuration creates a new one. All types are
// safe for concurrent use. Start reading with Control in control.go.
package access
