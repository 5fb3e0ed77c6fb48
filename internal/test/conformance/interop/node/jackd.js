'use strict'
const Jackd = require('jackd')
const yaml = require('js-yaml')
const life = require('./life')

const job = ({ id, payload }) => ({ id, body: Buffer.from(payload) })

life({
  name: 'jackd',
  // 2.2.2 sends a Buffer as JSON, replaces a TTR of 0 with its default, does not
  // end the line of pause-tube, and mixes up bodies that arrive in one packet.
  cannot: ['binary body', 'a time to run of 0 becomes 1', 'pause, and a pause of 0 resumes at once',
    'many commands at once are answered in order'],
  async connect (host, port) {
    const c = new Jackd()
    await c.connect({ host, port })
    return {
      tellsDeadlines: true,
      quit: () => c.disconnect(),
      use: t => c.use(t),
      watch: t => c.watch(t),
      ignore: t => c.ignore(t),
      put: (body, { pri = 0, delay = 0, ttr = 60 } = {}) => c.put(body.toString(), { priority: pri, delay, ttr }),
      reserve: () => c.reserve().then(job),
      reserveWithTimeout: s => c.reserveWithTimeout(s).then(job),
      reserveJob: id => c.reserveJob(id).then(job),
      delete: id => c.delete(id),
      release: (id, priority, delay) => c.release(id, { priority, delay }),
      bury: (id, pri) => c.bury(id, pri),
      touch: id => c.touch(id),
      kick: n => c.kick(n),
      kickJob: id => c.kickJob(id),
      peek: id => c.peek(id).then(job),
      peekReady: () => c.peekReady().then(job),
      peekDelayed: () => c.peekDelayed().then(job),
      peekBuried: () => c.peekBuried().then(job),
      stats: () => c.stats().then(yaml.load),
      statsTube: t => c.statsTube(t).then(yaml.load),
      statsJob: id => c.statsJob(id).then(yaml.load),
      listTubes: () => c.listTubes().then(yaml.load),
      listTubeUsed: () => c.listTubeUsed(),
      listTubesWatched: () => c.listTubesWatched().then(yaml.load)
    }
  }
})
