#!/usr/bin/env bash
# Start a Slurm of this one machine for tests/experiments/test_cluster.py: as root, in a container or virtual machine.
# It overwrites /etc/slurm/slurm.conf. Needs Debian's packages slurm-wlm and munge.
set -euo pipefail
host=$(hostname -s)
mkdir -p /etc/slurm /var/spool/slurmctld /var/spool/slurmd /var/log/slurm /run/munge /var/log/munge /var/lib/munge
[ -f /etc/munge/munge.key ] || head -c 1024 /dev/urandom >/etc/munge/munge.key
chown -R munge:munge /etc/munge /run/munge /var/log/munge /var/lib/munge
chmod 400 /etc/munge/munge.key
chmod 755 /run/munge
cat >/etc/slurm/slurm.conf <<END
ClusterName=test
SlurmctldHost=$host
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
KillWait=10
NodeName=$host CPUs=$(nproc) RealMemory=2000 State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
pgrep munged >/dev/null || runuser -u munge -- /usr/sbin/munged
pgrep slurmctld >/dev/null || slurmctld
pgrep slurmd >/dev/null || slurmd
for _ in $(seq 30); do
  srun --immediate=5 true 2>/dev/null && exec sinfo
  sleep 1
done
echo "Slurm does not run a job: see /var/log/slurm" >&2
exit 1
