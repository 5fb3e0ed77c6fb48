module github.com/beanpole-mq/beanpole/internal/load/rivals

go 1.26.0

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/beanpole-mq/beanpole v0.0.0
)

require (
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/beanpole-mq/beanpole => ../../..
