module github.com/mapmatched/mmplug

go 1.26
