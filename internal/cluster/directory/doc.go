// Package directory manages DIR/cluster, which turns the directory of a journal into the
// directory of a cluster member. It contains the ids, the credentials and the join
// tokens.
//
//	d, err := directory.Begin(vfs.OS, dir, directory.Identity{Listen: addr, Unfinished: directory.Init}, credentials)
//	…                              // create the cluster's log in DIR/cluster/log
//	err = d.Finish()               // now a server can start
//
//	d, err := directory.Open(vfs.OS, dir)
//	d.Credentials                  // for the transport
//
// # Files
//
//	DIR/cluster/member.json   ids, address, certificates and keys of member and authority
//	DIR/cluster/tokens/       an empty file for each unused token
//	DIR/cluster/log/          the log of the cluster, package raftlog
//
// All files have mode 0600. In another user's directory, files that root creates belong
// to that user.
//
// # Interruptions
//
// A command that creates, changes or removes a member first writes its name to
// member.json (Identity.Unfinished), together with everything that it needs to continue,
// and removes the name last. Each write replaces member.json with a rename. So a command
// that was stopped at any point, or that failed on a full disk, can be repeated. No
// server starts on the directory before that.
//
// # Certificates
//
// A certificate names its member and its cluster. It does not expire: to revoke it,
// remove the member from the cluster. A thief of a member's files can act as any member,
// so a theft requires a new cluster (doc/cluster.md).
//
// # Tokens
//
// A token is one line. It contains the cluster's id, the fingerprint of its authority, a
// secret of 256 bits, and the address of the member that admits the new one. It can be
// used once, within an hour. The fingerprint authenticates the cluster to the joining
// member, and the secret authenticates that member to the cluster. The directory stores
// only the SHA-256 sum of the secret, as the name of a file. To redeem a token, the
// member removes the file, which succeeds only once.
package directory
