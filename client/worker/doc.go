// Package worker runs a function for each job of a queue.
package worker
