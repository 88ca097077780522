# Progress of the shell scripts: a line for each step, with its seconds. The output of its command goes to a log.
# On a terminal the line changes while the step runs. Elsewhere there is a line at its begin, each half minute, and at its end.

fail() { printf '\n%s\n' "$*" >&2; exit 1; }

log=.local/setup.log
running=.local/setup.running # the shell, its command, and when that started

# step TITLE REMEDY COMMAND...: exits with code 1 if the command fails, and prints the last lines of its output.
step() {
    title=$1 remedy=$2
    shift 2
    mkdir -p .local
    end_abandoned
    printf '\n$ %s\n' "$*" >>"$log"
    first=$(wc -l <"$log")
    begin=$(date +%s)
    [ -t 1 ] || printf '  … %s\n' "$title"
    "$@" >>"$log" 2>&1 </dev/null &
    command=$!
    trap 'kill "$command" 2>/dev/null || true; wait "$command" || true; exit 130' INT TERM HUP
    echo "$$ $command $(started "$command")" >"$running"
    watch_step &
    watcher=$!
    code=0
    wait "$command" || code=$?
    trap - INT TERM HUP
    kill "$watcher" 2>/dev/null || true
    wait "$watcher" 2>/dev/null || true
    rm -f "$running"
    [ ! -t 1 ] || printf '\r\033[K'
    if [ "$code" -ne 0 ]; then
        printf '\n%s failed (exit code %s). %s\nThe full output is in %s. The last lines:\n' "$title" "$code" "$remedy" "$PWD/$log" >&2
        tail -n +"$((first + 1))" "$log" | tail -n 15 | sed 's/^/    /' >&2
        exit 1
    fi
    printf '  ✓ %s (%s s)\n' "$title" "$(($(date +%s) - begin))"
}

# Show the seconds and, from the third on, the last line of the output: with a slow network that is the package that does not come.
watch_step() {
    last=0
    while sleep 1 && kill -0 "$command" 2>/dev/null; do
        seconds=$(($(date +%s) - begin))
        detail=
        [ "$seconds" -lt 3 ] || detail=$(tail -n +"$((first + 1))" "$log" | tail -n 1 | tr -d '\000-\037' | cut -c 1-100)
        if [ -t 1 ]; then
            printf '\r\033[K%s' "$(printf '  … %s (%s s) %s' "$title" "$seconds" "$detail" | cut -c "1-$(($(tput cols 2>/dev/null || echo 80) - 1))")"
        elif [ "$((seconds - last))" -ge 30 ]; then
            last=$seconds
            printf '      %s s: %s\n' "$seconds" "$detail"
        fi
    done
}

# End the command of a step whose shell was killed: it would write into the same folder as the next one.
end_abandoned() {
    [ -e "$running" ] || return 0
    read -r shell abandoned when <"$running" || true
    if ! kill -0 "${shell:-0}" 2>/dev/null && [ -n "${when:-}" ] && [ "$(started "$abandoned")" = "$when" ]; then
        kill -9 "$abandoned" 2>/dev/null || true
    fi
}

started() { ps -o lstart= -p "$1" 2>/dev/null | tr -s ' ' | sed 's/^ //; s/ $//'; }
