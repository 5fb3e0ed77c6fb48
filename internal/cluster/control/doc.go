// Package control answers what members of a cluster ask of each other, and commands of a
// member: to join, for the state of the cluster, and for changes of its members.
//
//	c := &control.Control{Member: m, Directory: d, Transport: t}   // answers: for transport.Options
//	reply, err := c.Request(ctx, from, body)
//
//	s, err := control.Ask[admin.Cluster](ctx, d, control.Request{Do: control.DoStatus})
//	joined, err := control.Join(ctx, addr, token, listen, inPlaceOf)
//
// Requests and answers are JSON. A member that does not lead passes a request that is for
// the leader on to it, once. So a command may ask any member.
//
// Start reading with Request in control.go, then ask.go.
package control
