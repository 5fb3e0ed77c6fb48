#!/bin/sh
# The jobs stay: /var/lib/beanpole goes only when Debian is told to purge.
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
