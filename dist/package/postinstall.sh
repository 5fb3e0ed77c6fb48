#!/bin/sh
# Debian calls it with "configure" and the old version, RPM with 1 (install) or
# 2 (upgrade).
set -e

if ! getent passwd beanpole >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/beanpole --no-create-home \
		--shell /usr/sbin/nologin --comment "beanpole work queue" beanpole
fi
install -d -m 700 -o beanpole -g beanpole /var/lib/beanpole

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ "$1" = 1 ] || { [ "$1" = configure ] && [ -z "$2" ]; }; then
		systemctl enable --now beanpole.service || true
	else
		# Nothing that was acknowledged is lost by a restart.
		systemctl try-restart beanpole.service || true
	fi
fi
