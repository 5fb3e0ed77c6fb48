'use strict'
const Beanstalkd = require('beanstalkd').default
const life = require('./life')

const job = ([id, body]) => ({ id, body: Buffer.from(body) })

life({
  name: 'beanstalkd',
  async connect (host, port) {
    const c = new Beanstalkd(host, port)
    await c.connect()
    return {
      tellsDeadlines: true,
      quit: () => c.quit(),
      use: t => c.use(t),
      watch: t => c.watch(t),
      ignore: t => c.ignore(t),
      put: (body, { pri = 0, delay = 0, ttr = 60 } = {}) => c.put(pri, delay, ttr, body),
      reserve: () => c.reserve().then(job),
      reserveWithTimeout: s => c.reserveWithTimeout(s).then(job),
      delete: id => c.delete(id),
      release: (id, pri, delay) => c.release(id, pri, delay),
      bury: (id, pri) => c.bury(id, pri),
      touch: id => c.touch(id),
      kickJob: id => c.kickJob(id),
      peek: id => c.peek(id).then(job),
      peekReady: () => c.peekReady().then(job),
      peekDelayed: () => c.peekDelayed().then(job),
      peekBuried: () => c.peekBuried().then(job),
      stats: () => c.stats(),
      statsTube: t => c.statsTube(t),
      statsJob: id => c.statsJob(id),
      listTubes: () => c.listTubes(),
      listTubeUsed: () => c.listTubeUsed(),
      listTubesWatched: () => c.listTubesWatched(),
      pauseTube: (t, s) => c.pauseTube(t, s)
    }
  }
})
