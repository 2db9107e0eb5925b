
# What follows takes the place of the package bash-completion where that is not loaded.

# __cadre_words sets cur, prev, words and cword. Bash separates words at "=" and ":" too; these are
# joined again. What stands behind the cursor does not count.
__cadre_words()
{
    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref -n =: cur prev words cword
        return
    fi
    local i word rest=${COMP_LINE:0:$COMP_POINT} before="" blank
    words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        blank=${rest%%[^[:blank:]]*}
        rest=${rest#"$blank"}
        word=${COMP_WORDS[i]}
        [[ $rest == "$word"* ]] || word=$rest
        rest=${rest#"$word"}
        if [[ $i -gt 0 && -z $blank && ($word == [=:]* || $before == *[=:]) ]]; then
            words[${#words[@]} - 1]+=$word
        else
            words[${#words[@]}]=$word
        fi
        before=$word
    done
    cword=$((${#words[@]} - 1))
    cur=${words[cword]}
    prev=""
    [[ $cword -eq 0 ]] || prev=${words[cword - 1]}
}

# __cadre_filedir offers files: all, those with the endings "yaml|yml|", or with -d folders alone.
__cadre_filedir()
{
    if declare -F _filedir >/dev/null 2>&1; then
        _filedir "$@"
        return
    fi
    local IFS=$'\n' path
    for path in $(compgen -f -- "$cur"); do
        if [[ -d ${path/#\~/$HOME} || $# -eq 0 || ($1 != -d && $path =~ \.(${1%|})$) ]]; then
            COMPREPLY[${#COMPREPLY[@]}]=$path
        fi
    done
    if [[ $(type -t compopt) == builtin ]]; then
        compopt -o filenames
    fi
}
