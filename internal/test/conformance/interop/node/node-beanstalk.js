'use strict'
const { Client } = require('node-beanstalk')
const life = require('./life')

// It returns null or false if the server replied NOT_FOUND or TIMED_OUT.
const some = word => value => {
  if (value === null || value === false) throw new Error(word)
  return value
}
const job = word => value => {
  const { id, payload } = some(word)(value)
  return { id: String(id), body: payload }
}

const raw = { serialize: body => body, deserialize: body => body }

life({
  name: 'node-beanstalk',
  async connect (host, port) {
    const c = new Client({ host, port, serializer: raw })
    await c.connect()
    return {
      quit: () => c.disconnect(true),
      use: t => c.use(t),
      watch: t => c.watch(t),
      ignore: t => c.ignore(t).then(some('NOT_IGNORED')),
      put: (body, { pri = 0, delay = 0, ttr = 60 } = {}) => c.put(Buffer.from(body), ttr, pri, delay).then(j => String(j.id)),
      reserve: () => c.reserve().then(job('TIMED_OUT')),
      reserveWithTimeout: s => c.reserveWithTimeout(s).then(job('TIMED_OUT')),
      reserveJob: id => c.reserveJob(Number(id)).then(job('NOT_FOUND')),
      delete: id => c.delete(Number(id)).then(some('NOT_FOUND')),
      release: (id, pri, delay) => c.release(Number(id), pri, delay).then(some('NOT_FOUND')),
      bury: (id, pri) => c.bury(Number(id), pri).then(some('NOT_FOUND')),
      touch: id => c.touch(Number(id)).then(some('NOT_FOUND')),
      kick: n => c.kick(n),
      kickJob: id => c.kickJob(Number(id)).then(some('NOT_FOUND')),
      peek: id => c.peek(Number(id)).then(job('NOT_FOUND')),
      peekReady: () => c.peekReady().then(job('NOT_FOUND')),
      peekDelayed: () => c.peekDelayed().then(job('NOT_FOUND')),
      peekBuried: () => c.peekBuried().then(job('NOT_FOUND')),
      stats: () => c.stats(),
      statsTube: t => c.statsTube(t).then(some('NOT_FOUND')),
      statsJob: id => c.statsJob(Number(id)).then(some('NOT_FOUND')),
      listTubes: () => c.listTubes(),
      listTubeUsed: () => c.listTubeUsed(),
      listTubesWatched: () => c.listTubesWatched(),
      pauseTube: (t, s) => c.pauseTube(t, s)
    }
  }
})
