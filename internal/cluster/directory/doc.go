// Package directory keeps what makes a journal's directory that of a member of a cluster:
// DIR/cluster, with the ids, the certificates and the tokens by which others may join.
//
//	m, err := directory.Begin(dir, addr, directory.NewCA(directory.NewCluster(), directory.NewID()))
//	…                              // the log of the cluster is made in DIR/cluster/log
//	err = m.Finish()               // from now on the directory is a member's
//
//	m, err := directory.Open(dir)
//	m.Credentials                  // for the transport
//
// # Files
//
//	DIR/cluster/member.json   the ids, and where the member listens; written last
//	DIR/cluster/ca.crt        the authority of the cluster: only its certificates count
//	DIR/cluster/ca.key        its key, so that each member can admit another
//	DIR/cluster/member.crt    the member's own certificate, and its key
//	DIR/cluster/member.key
//	DIR/cluster/tokens/       a file for each token that was not used yet
//	DIR/cluster/log/          the log of the cluster, package raftlog
//
// All files have mode 0600. In a directory of another user, those that root makes belong to
// that user.
//
// # Certificates
//
// A certificate names its member and its cluster. It has no end: a member that is not
// wanted any more is removed from the cluster. The files of a member are enough to do
// whatever a member can, so after a theft another cluster is needed (doc/cluster.md).
//
// # Tokens
//
// A token is one line, good once and for an hour: the cluster, the fingerprint of its
// authority, a secret of 256 bits, and the address to join at. A member that joins knows
// by the fingerprint whom it talks to, and is admitted for the secret. Only the SHA-256
// sum of the secret is kept, as the name of a file. To redeem the token is to remove the
// file, which can be done once.
//
// # Not here
//
// What is in the log and the journal, and any network.
package directory
