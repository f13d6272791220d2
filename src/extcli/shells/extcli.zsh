#compdef extcli
# Completion of extcli in zsh. Load it in ~/.zshrc, after compinit: source <(extcli completion zsh)
_extcli() {
    local text
    local -a found
    text=$(_EXTCLI_COMPLETE=zsh _EXTCLI_LINE="${words[1,CURRENT-1]} $PREFIX" ${(Q)words[1]} 2>/dev/null)
    if (( $? == 10 )); then
        _files
        return
    fi
    [[ -z $text ]] && return 1
    found=("${(@f)text}")
    _describe extcli found
}
if [[ $funcstack[1] == _extcli ]]; then
    _extcli "$@"
else
    compdef _extcli extcli
fi
