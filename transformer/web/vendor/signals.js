import {
  createElement as t,
  Fragment as i,
  Component as n,
  options as e,
  isValidElement as o,
} from "./preact.js";
import { useMemo as f, useRef as r, useEffect as u } from "./hooks.js";
import {
  effect as c,
  Signal as s,
  computed as l,
  signal as a,
  batch as h,
} from "./signals-core.js";
export {
  Signal,
  action,
  batch,
  computed,
  createModel,
  effect,
  signal,
  untracked,
} from "./signals-core.js";
const d = "undefined" != typeof window && !!window.__PREACT_SIGNALS_DEVTOOLS__;
let p,
  m,
  v,
  _ = [],
  g = [];
c(function () {
  p = this.N;
})();
function b(t, i) {
  e[t] = i.bind(null, e[t] || (() => {}));
}
function y(t) {
  if (v) {
    const t = v;
    v = void 0;
    t();
  }
  v = t && t.S();
}
function w({ data: t }) {
  const i = useSignal(t);
  i.name = "ReactiveDom";
  i.value = t;
  const [n, e] = f(() => {
    let t = this,
      n = this.__v;
    while ((n = n.__))
      if (n.__c) {
        n.__c.__$f |= 4;
        break;
      }
    const e = l(() => {
        let t = i.value.value;
        return 0 === t ? 0 : !0 === t ? "" : t || "";
      }),
      f = l(() => !Array.isArray(e.value) && !o(e.value)),
      r = c(function () {
        this.N = M;
        if (f.value) {
          const i = e.value;
          if (t.__v && t.__v.__e && 3 === t.__v.__e.nodeType) t.__v.__e.data = i;
        }
      }),
      u = this.__$u.d;
    this.__$u.d = function () {
      r();
      u.call(this);
    };
    return [f, e];
  }, []);
  return n.value ? e.peek() : e.value;
}
w.displayName = "ReactiveTextNode";
Object.defineProperties(s.prototype, {
  constructor: { configurable: !0, value: t(i, null).constructor },
  type: { configurable: !0, value: w },
  props: {
    configurable: !0,
    get() {
      const t = this;
      return {
        data: {
          get value() {
            return t.value;
          },
        },
      };
    },
  },
  __b: { configurable: !0, value: 1 },
});
b("__b", (t, i) => {
  y();
  m = void 0;
  if ("string" == typeof i.type) {
    let t,
      n = i.props;
    for (let e in n) {
      if ("children" === e) continue;
      let o = n[e];
      if (o instanceof s) {
        if (!t) i.__np = t = {};
        t[e] = o;
        n[e] = o.peek();
      }
    }
  }
  t(i);
});
b("__r", (t, n) => {
  t(n);
  if (n.type !== i) {
    y();
    let t,
      i = n.__c;
    if (i) {
      i.__$f &= -2;
      t = i.__$u;
      if (void 0 === t)
        i.__$u = t = (function (t, i) {
          let n;
          c(
            function () {
              n = this;
            },
            { name: i },
          );
          n.c = t;
          return n;
        })(
          (function (t) {
            return function () {
              var i;
              if (d) null == (i = this.y) || i.call(this);
              t.__$f |= 1;
              t.setState({});
            };
          })(i),
          "function" == typeof n.type ? n.type.displayName || n.type.name : "",
        );
    }
    m = i;
    y(t);
  }
});
b("__e", (t, i, n, e) => {
  y();
  m = void 0;
  t(i, n, e);
});
b("diffed", (t, i) => {
  y();
  m = void 0;
  let n;
  if ("string" == typeof i.type && (n = i.__e)) {
    let t = i.__np,
      e = i.props,
      o = n.U;
    if (o)
      for (let i in o) {
        let n = o[i];
        if (!(void 0 === n || (t && i in t))) {
          n.d();
          o[i] = void 0;
        }
      }
    if (t) {
      if (!o) {
        o = {};
        n.U = o;
      }
      for (let i in t) {
        let f = o[i],
          r = t[i];
        if (void 0 === f) {
          f = k(n, i, r, e);
          o[i] = f;
        } else f.o(r, e);
      }
    }
  }
  t(i);
});
function k(t, i, n, e) {
  const o = i in t && void 0 === t.ownerSVGElement,
    f = a(n);
  return {
    o: (t, i) => {
      f.value = t;
      e = i;
    },
    d: c(function () {
      this.N = M;
      const n = f.value.value;
      if (e[i] !== n) {
        e[i] = n;
        if (o) t[i] = n;
        else if (null != n && (!1 !== n || "-" === i[4])) t.setAttribute(i, n);
        else t.removeAttribute(i);
      }
    }),
  };
}
b("unmount", (t, i) => {
  if ("string" == typeof i.type) {
    let t = i.__e;
    if (t) {
      const i = t.U;
      if (i) {
        t.U = void 0;
        for (let t in i) {
          let n = i[t];
          if (n) n.d();
        }
      }
    }
    let n = i.__np;
    if (n) {
      let t = i.props;
      for (let i in n) t[i] = n[i];
    }
    i.__np = void 0;
  } else {
    let t = i.__c;
    if (t) {
      t.__$f |= 8;
      const i = t.__$u;
      if (i) {
        t.__$u = void 0;
        i.d();
      }
    }
  }
  t(i);
});
b("__h", (t, i, n, e) => {
  if (e < 3) i.__$f |= 2;
  t(i, n, e);
});
n.prototype.shouldComponentUpdate = function (t, i) {
  if (this.__R) return !0;
  const n = this.__$u,
    e = n && void 0 !== n.s;
  for (let t in i) return !0;
  if (this.__f || ("boolean" == typeof this.u && !0 === this.u)) {
    const t = 2 & this.__$f;
    if (!(e || t || 4 & this.__$f)) return !0;
    if (1 & this.__$f) return !0;
  } else {
    if (!(e || 4 & this.__$f)) return !0;
    if (3 & this.__$f) return !0;
  }
  for (let i in t) if ("__source" !== i && t[i] !== this.props[i]) return !0;
  for (let i in this.props) if (!(i in t)) return !0;
  return !1;
};
function useSignal(t, i) {
  return f(() => a(t, i), []);
}
function useComputed(t, i) {
  const n = r(t);
  n.current = t;
  m.__$f |= 4;
  return f(() => l(() => n.current(), i), []);
}
const q =
    "undefined" == typeof requestAnimationFrame
      ? setTimeout
      : function (t) {
          const i = () => {
              clearTimeout(n);
              cancelAnimationFrame(e);
              t();
            },
            n = setTimeout(i, 35),
            e = requestAnimationFrame(i);
        },
  A = (t) => {
    queueMicrotask(() => {
      queueMicrotask(t);
    });
  };
function T() {
  h(() => {
    let t;
    while ((t = _.shift())) p.call(t);
  });
}
function x() {
  if (1 === _.push(this)) (e.requestAnimationFrame || q)(T);
}
function F() {
  h(() => {
    let t;
    while ((t = g.shift())) p.call(t);
  });
}
function M() {
  if (1 === g.push(this)) (e.requestAnimationFrame || A)(F);
}
function useSignalEffect(t, i) {
  const n = r(t);
  n.current = t;
  const e = m;
  u(
    () =>
      c(function () {
        this.N = x;
        if (!(e && 8 & e.__$f)) return n.current();
      }, i),
    [],
  );
}
function R(t) {
  const i = f(() => t(), []);
  u(() => i[Symbol.dispose], [i]);
  return i;
}
export { useComputed, R as useModel, useSignal, useSignalEffect }; //# sourceMappingURL=signals.mjs.map
