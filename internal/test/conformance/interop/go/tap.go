package main

import (
	"fmt"
	"strings"
)

// A check is a test of one requirement. It returns an error if the requirement is not
// met.
type check struct {
	name string
	run  func() error
}

// report runs the checks and prints their results as TAP, which ../run counts.
func report(client string, checks []check) {
	fmt.Printf("# %s\n1..%d\n", client, len(checks))
	for i, c := range checks {
		if err := c.run(); err != nil {
			fmt.Printf("not ok %d - %s: %s\n", i+1, c.name, strings.Join(strings.Fields(err.Error()), " "))
		} else {
			fmt.Printf("ok %d - %s\n", i+1, c.name)
		}
	}
}

// equal returns an error unless the values have the same printed form.
func equal(what string, got, want any) error {
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		return fmt.Errorf("%s: got %.200s, want %.200s", what, g, w)
	}
	return nil
}
