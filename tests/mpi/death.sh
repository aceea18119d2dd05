# usage: death.sh MPIRUN... : a job that loses a rank ends by itself, with an error, long before the limit.
code=0
timeout 60 "$@" >out.log 2>&1 || code=$?
cat out.log
grep -q '^dispatched' out.log || { echo "the job did not come to its middle"; exit 1; }
((code != 0)) || { echo "the job ended as if nothing had happened"; exit 1; }
((code != 124)) || { echo "the job hung"; exit 1; }
! grep -q 'came to the end' out.log || { echo "a rank came to the end without the dead one"; exit 1; }
