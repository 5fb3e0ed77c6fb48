// Package admin manages a beanpole server: it looks into the queue, and changes it, through the JSON API of its admin listener
// (beanpole --admin ADDR).
//
//	c, err := admin.New("localhost:11380", "")
//	page, err := c.ListTubes(ctx, &admin.ListTubes{Sort: "-ready", Limit: 10})
//
// Each operation of the API is a method of [Client], with a struct for what it takes. What is zero is left out there; where zero or empty
// means something the field is a pointer, as in Body: new(admin.Text("hello")). Names and patterns are given as they are: the client escapes
// them. doc/api.md explains the operations, and has the right that each needs. Workers and producers use package client, which is faster.
//
// The API has the version 1, and only grows: new members and new operations may come.
package admin
