#!/bin/sh
# Debian calls it with "configure" and the old version, RPM with 1 (install) or
# 2 (upgrade).
set -e

config=/etc/beanpole/beanpole.toml
jobs=/var/lib/beanpole

if ! getent passwd beanpole >/dev/null; then
	useradd --system --user-group --home-dir "$jobs" --no-create-home \
		--shell /usr/sbin/nologin --comment "beanpole work queue" beanpole
fi
install -d -m 700 -o beanpole -g beanpole "$jobs"

# Takes the options of Debian's beanstalkd over, and copies its jobs; beanpole reads
# them when it starts. What is beanstalkd's stays as it is.
take_over() {
	BEANSTALKD_LISTEN_ADDR=127.0.0.1 BEANSTALKD_LISTEN_PORT=11300 BEANSTALKD_EXTRA=
	. /etc/default/beanstalkd
	# The options are words between blanks, as its unit has them.
	# shellcheck disable=SC2086
	beanpole config print -l "$BEANSTALKD_LISTEN_ADDR" -p "$BEANSTALKD_LISTEN_PORT" $BEANSTALKD_EXTRA >"$config.taken" || {
		echo "beanpole: the options in /etc/default/beanstalkd are not taken over" >&2
		return
	}
	sed -n 's/  *# command line.*//p' "$config.taken" | while read -r line; do
		name=${line%% *}
		given=$line
		line=$(echo "$line" | sed 's|"unix:[^"]*/\([^"/]*\)"|"unix:/run/beanpole/\1"|g')
		if [ "$line" != "$given" ]; then
			echo "beanpole: clients must use other sockets, for the service can make them in /run/beanpole only: $line" >&2
		fi
		case $name in
		user) ;; # it runs as beanpole
		journal)
			dir=$(echo "$line" | cut -d'"' -f2)
			for log in "$dir"/binlog.*; do
				[ -e "$log" ] && install -m 600 -o beanpole -g beanpole "$log" "$jobs" || true
			done
			echo "beanpole: the jobs in $dir were copied to $jobs" >&2
			;;
		*) sed -i "s|^\(# \)\{0,1\}$name = .*|$line|" "$config" ;;
		esac
	done
	echo "beanpole: the options in /etc/default/beanstalkd were taken over to $config" >&2
}

if [ ! -e "$config" ]; then
	# Tokens are in it: it is for its group only.
	install -D -m 640 -o root -g beanpole /usr/share/doc/beanpole/beanpole.toml "$config"
	if [ -e /etc/default/beanstalkd ]; then
		take_over
		rm -f "$config.taken"
	fi
fi

start() {
	systemctl "$@" || echo "beanpole: the service does not run; 'journalctl -u beanpole' says why" >&2
}

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ "$1" = 1 ] || { [ "$1" = configure ] && [ -z "$2" ]; }; then
		start enable --now beanpole.service
	else
		# Nothing that was acknowledged is lost by a restart.
		start try-restart beanpole.service
	fi
fi
