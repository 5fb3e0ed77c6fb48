// Package control answers requests from other members and from commands: to join the
// cluster, to show its state, and to change its members.
//
//	c := &control.Control{Member: m, Directory: d, Transport: t}   // for transport.Options
//	reply, err := c.Request(ctx, from, body)
//
//	s, err := control.Ask[admin.Cluster](ctx, d, control.Request{Do: control.DoStatus})
//	joined, err := control.Join(ctx, addr, token, listen, inPlaceOf)
//
// Requests and replies are JSON. A member that is not the leader forwards a request to
// the leader, once. Therefore a command can send a request to any member.
//
// Start reading with Request in control.go, then ask.go.
package control
