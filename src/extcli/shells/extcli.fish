# Completion of extcli in fish. Load it in config.fish: extcli completion fish | source
function __extcli_complete
    set -l found (env _EXTCLI_COMPLETE=fish _EXTCLI_LINE=(commandline -cp | string collect) extcli 2>/dev/null)
    if test $status -eq 10
        __fish_complete_path (commandline -ct)
        return
    end
    set -q found[1]; and printf '%s\n' $found
end
complete -c extcli -f -a '(__extcli_complete)'
