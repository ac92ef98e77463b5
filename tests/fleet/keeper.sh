#!/bin/sh
# Runs one host until it is switched off, through all its reboots (nspawn ends with 133 for each). host.py sets the variables.
# usage: FLEET_LINK=… FLEET_CUT=… FLEET_GROUPS=… keeper.sh NSPAWN-ARGUMENTS…

stay_cut() {
    # A reboot makes a new cable: a host that was cut off stays so.
    tries=0
    until ip link set "$FLEET_LINK" down 2>/dev/null || [ "$tries" -gt 500 ]; do
        tries=$((tries + 1))
        sleep 0.01
    done
}

boot() {
    for group in $FLEET_GROUPS; do
        echo 0 >"$group/cgroup.procs" || exit 1
    done
    exec systemd-nspawn "$@"
}

while :; do
    if [ -e "$FLEET_CUT" ]; then stay_cut & fi
    (boot "$@")
    [ $? -eq 133 ] || exit 0
done
