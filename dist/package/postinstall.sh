#!/bin/sh
# Debian passes "configure" and the old version, RPM passes 1 (install) or 2 (upgrade).
set -e

config=/etc/beanpole/beanpole.toml
jobs=/var/lib/beanpole

if ! getent passwd beanpole >/dev/null; then
	useradd --system --user-group --home-dir "$jobs" --no-create-home \
		--shell /usr/sbin/nologin --comment "beanpole work queue" beanpole
fi
install -d -m 700 -o beanpole -g beanpole "$jobs"

say() { echo "beanpole: $*" >&2; }

# jobs_of prints the number of jobs, and the damage, in the beanstalkd files in a directory.
jobs_of() { beanpole journal check "$1" 2>/dev/null | sed -n 's/^beanstalkd  \(jobs\|damage\)/\1/p'; }

# copy_jobs copies the jobs of beanstalkd in the directory $1; beanpole reads them at its next
# start. The files get their names only after the copy was compared with the original.
copy_jobs() {
	set -- "$1" "$1"/binlog.*
	if [ ! -e "$2" ]; then
		say "$1 contains no jobs"
		return
	fi
	for segment in "$jobs"/*.wal; do
		if [ -e "$segment" ]; then
			say "$jobs already contains jobs; those in $1 were not copied"
			return
		fi
	done
	copy=$jobs/.copy
	rm -rf "$copy"
	# A file system that can share blocks needs no space for the copy.
	if install -d -m 700 -o beanpole -g beanpole "$copy" && cp --reflink=auto "$1"/binlog.* "$copy" &&
		chown beanpole:beanpole "$copy"/* && chmod 600 "$copy"/* &&
		found=$(jobs_of "$copy") && [ -n "$found" ] && [ "$found" = "$(jobs_of "$1")" ] && mv "$copy"/* "$jobs"; then
		rmdir "$copy"
		say "copied the jobs of beanstalkd from $1 to $jobs: $found"
		return
	fi
	rm -rf "$copy"
	say "copying the jobs of beanstalkd from $1 to $jobs failed"
	return 1
}

# take_over writes the options of Debian's beanstalkd to the configuration and copies its jobs.
# The beanstalkd files stay as they are. It fails if an option or a job would be missing.
take_over() {
	BEANSTALKD_LISTEN_ADDR=127.0.0.1 BEANSTALKD_LISTEN_PORT=11300 BEANSTALKD_EXTRA=
	. /etc/default/beanstalkd
	case $(dpkg-query -W -f '${Version}' beanstalkd 2>/dev/null) in
	1.[0-9]-* | 1.1[0-2]-*) compat=1.12 ;; # its clients can depend on that version's replies
	*) compat= ;;
	esac
	# xargs splits the options and removes quotes, as systemd does.
	if ! printf '%s\n' "$BEANSTALKD_EXTRA" | xargs beanpole config print ${compat:+--compat "$compat"} \
		-l "$BEANSTALKD_LISTEN_ADDR" -p "$BEANSTALKD_LISTEN_PORT" >"$config.taken"; then
		say "the options in /etc/default/beanstalkd are not valid for beanpole"
		return 1
	fi
	sed -n 's/  *# command line.*//p' "$config.taken" | while read -r line; do
		name=${line%% *}
		given=$line
		line=$(echo "$line" | sed 's|"unix:[^"]*/\([^"/]*\)"|"unix:/run/beanpole/\1"|g')
		if [ "$line" != "$given" ]; then
			say "the service can only create sockets in /run/beanpole; change your clients to: $line"
		fi
		case $name in
		user) ;; # the service runs as beanpole
		journal) copy_jobs "$(echo "$line" | cut -d'"' -f2)" || exit 1 ;;
		*) sed -i "s|^\(# \)\{0,1\}$name = .*|$line|" "$config.new" ;;
		esac
	done || return 1
	say "copied the options of beanstalkd from /etc/default/beanstalkd to $config"
}

if [ ! -e "$config" ]; then
	# The file can contain tokens, so only its group can read it.
	install -D -m 640 -o root -g beanpole /usr/share/beanpole/beanpole.toml "$config.new"
	if [ -e /etc/default/beanstalkd ] && ! take_over; then
		rm -f "$config.new" "$config.taken"
		say "beanpole is not set up, and the beanstalkd files are unchanged. Remove the cause and run" \
			"'dpkg --configure beanpole', or write $config yourself first."
		exit 1
	fi
	rm -f "$config.taken"
	mv "$config.new" "$config"
fi

start() {
	systemctl "$@" || say "the service did not start; see 'journalctl -u beanpole'"
}

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ "$1" = 1 ] || { [ "$1" = configure ] && [ -z "$2" ]; }; then
		start enable --now beanpole.service
	else
		# Acknowledged jobs survive a restart.
		start try-restart beanpole.service
	fi
fi
