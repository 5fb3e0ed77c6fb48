'use strict'
const fivebeans = require('fivebeans')
const life = require('./life')

const job = ([id, body]) => ({ id, body })

life({
  name: 'fivebeans',
  async connect (host, port) {
    const c = new fivebeans.client(host, port)
    await new Promise((resolve, reject) => {
      c.on('connect', resolve)
      c.on('error', reject)
      c.connect()
    })
    // call turns a method with a callback into a promise of its results.
    const call = (method, ...args) => new Promise((resolve, reject) =>
      c[method](...args, (err, ...results) => err ? reject(new Error(err)) : resolve(results)))
    const one = (...args) => call(...args).then(results => results[0])
    return {
      tellsDeadlines: true,
      quit: () => c.end(),
      use: t => one('use', t),
      watch: t => one('watch', t),
      ignore: t => one('ignore', t),
      put: (body, { pri = 0, delay = 0, ttr = 60 } = {}) => one('put', pri, delay, ttr, Buffer.from(body)),
      reserve: () => call('reserve').then(job),
      reserveWithTimeout: s => call('reserve_with_timeout', s).then(job),
      delete: id => one('destroy', id),
      release: (id, pri, delay) => one('release', id, pri, delay),
      bury: (id, pri) => one('bury', id, pri),
      touch: id => one('touch', id),
      kick: n => one('kick', n),
      kickJob: id => one('kick_job', id),
      peek: id => call('peek', id).then(job),
      peekReady: () => call('peek_ready').then(job),
      peekDelayed: () => call('peek_delayed').then(job),
      peekBuried: () => call('peek_buried').then(job),
      stats: () => one('stats'),
      statsTube: t => one('stats_tube', t),
      statsJob: id => one('stats_job', id),
      listTubes: () => one('list_tubes'),
      listTubeUsed: () => one('list_tube_used'),
      listTubesWatched: () => one('list_tubes_watched'),
      pauseTube: (t, s) => one('pause_tube', t, s)
    }
  }
})
