#!/bin/sh
# The jobs stay: only a purge deletes /var/lib/beanpole.
set -e

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ]; then
	rm -rf /var/lib/beanpole /etc/beanpole
	if getent passwd beanpole >/dev/null; then
		userdel beanpole
	fi
fi
