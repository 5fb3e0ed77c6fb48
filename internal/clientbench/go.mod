module github.com/beanpole-mq/beanpole/internal/clientbench

go 1.26.0

require (
	github.com/beanpole-mq/beanpole v0.0.0
	github.com/beanstalkd/go-beanstalk v0.2.0
)

require (
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/time v0.16.0 // indirect
)

replace github.com/beanpole-mq/beanpole => ../..
