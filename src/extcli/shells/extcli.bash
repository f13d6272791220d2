# Completion of extcli in bash. Load it in ~/.bashrc: source <(extcli completion bash)
_extcli() {
    local found name
    COMPREPLY=()
    found=$(_EXTCLI_COMPLETE=bash _EXTCLI_LINE="${COMP_LINE:0:COMP_POINT}" "${1/#\~\//$HOME/}" 2>/dev/null)
    if [ $? -eq 10 ]; then
        compopt -o default 2>/dev/null
        return
    fi
    while IFS= read -r name; do
        [ -n "$name" ] && COMPREPLY+=("$name")
    done <<<"$found"
}
complete -F _extcli extcli
