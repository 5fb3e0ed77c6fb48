// Package kubernetes holds manifests, and a test that kustomize builds them, that every
// field of them exists in the API, and that what they say of the program (ports, paths,
// probes, limits) is true. The same is tested of the members in contrib/compose.
package kubernetes
