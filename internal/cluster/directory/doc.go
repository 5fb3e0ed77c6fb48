// Package directory keeps DIR/cluster, which makes the directory of a journal that of a
// cluster's member: the ids, the credentials, and the tokens by which others can join.
//
//	d, err := directory.Begin(vfs.OS, dir, directory.Member{Listen: addr, Unfinished: directory.Init}, credentials)
//	…                              // make the cluster's log in DIR/cluster/log
//	err = d.Finish()               // now a server can start
//
//	d, err := directory.Open(vfs.OS, dir)
//	d.Credentials                  // for the transport
//
// # Files
//
//	DIR/cluster/member.json   the ids, the address, the member's certificate and key, and those of the cluster's authority
//	DIR/cluster/tokens/       a file for each unused token
//	DIR/cluster/log/          the log of the cluster, package raftlog
//
// All files have mode 0600. In a directory of another user, files that root makes belong to
// that user.
//
// # Interruptions
//
// A command that makes, changes or removes a member first writes its name to member.json
// (Member.Unfinished), together with everything that it needs to continue, and removes the
// name last. Each write replaces member.json with one rename. So a command that stopped at
// any point, or that failed on a full disk, can be repeated. No server starts on the
// directory before that.
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
