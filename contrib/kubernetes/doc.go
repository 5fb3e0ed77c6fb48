// Package kubernetes contains manifests, and a test that Kubernetes knows all their
// fields and that the program accepts their commands and settings.
package kubernetes
