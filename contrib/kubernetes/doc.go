// Package kubernetes contains manifests. Its tests check that Kubernetes supports all
// their fields, and that the program accepts their commands and settings.
package kubernetes
