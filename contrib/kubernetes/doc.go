// Package kubernetes contains manifests and tests. The tests check that kustomize builds the
// manifests, that the API has all their fields, and that their ports, paths, probes and
// limits match the program. They also check the members in contrib/compose.
package kubernetes
