// Package admin manages a beanpole server through the JSON API of its admin listener
// (beanpole --admin ADDR).
//
//	c, err := admin.New("localhost:11380", "")
//	page, err := c.ListTubes(ctx, &admin.ListTubes{Sort: "-ready", Limit: 10})
//
// Each operation of the API is a method of [Client], with a struct for its input. Fields
// with their zero value are left out. If zero or empty has a meaning, the field is a
// pointer, for example Body: new(admin.Text("hello")). The client escapes names and
// patterns. doc/api.md explains the operations and lists their rights. Workers and
// producers use package client, which is faster.
//
// The version of the API is 1. It only grows: new members and operations can be added.
package admin
