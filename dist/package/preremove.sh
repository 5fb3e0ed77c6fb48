#!/bin/sh
# Debian calls it with "remove" or "upgrade", RPM with 0 (remove) or 1 (upgrade).
set -e

if [ "$1" = remove ] || [ "$1" = 0 ]; then
	if [ -d /run/systemd/system ]; then
		systemctl disable --now beanpole.service beanpole.socket || true
	fi
fi
