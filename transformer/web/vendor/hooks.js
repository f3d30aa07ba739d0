import { options as n } from "./preact.js";
var t,
  r,
  u,
  i,
  o = Object.is,
  f = 0,
  c = [],
  e = [],
  a = n,
  v = a.__b,
  l = a.__r,
  m = a.diffed,
  h = a.__c,
  s = a.unmount,
  p = a.__;
function y(n, t) {
  (a.__h && a.__h(r, n, f || t), (f = 0));
  var u = r.__H || (r.__H = { __: [], __h: [] });
  return (n >= u.__.length && u.__.push({}), u.__[n]);
}
function d(n) {
  return ((f = 1), _(G, n));
}
function _(n, u, i) {
  var f = y(t++, 2);
  if (
    ((f.t = n),
    !f.__c &&
      ((f.__ = [
        i ? i(u) : G(void 0, u),
        function (n) {
          var t = (f.__N || f.__)[0],
            r = f.t(t, n);
          o(t, r) || ((f.__N = [r, f.__[1]]), f.__c.setState({}));
        },
      ]),
      (f.__c = r),
      !r.__f))
  ) {
    r.__f = !0;
    var c = r.shouldComponentUpdate;
    r.shouldComponentUpdate = function (n, t, r) {
      var u = this.__H;
      if (!u) return !0;
      var i = !1,
        f = this.props != n;
      if (
        (u.__.some(function (n) {
          n.__N && ((i = !0), o(n.__[0], n.__N[0]) || (f = !0));
        }),
        c)
      ) {
        var e = c.call(this, n, t, r);
        return i ? e || f : e;
      }
      return !i || f;
    };
  }
  return f.__;
}
function A(n, u) {
  var i = y(t++, 3);
  !a.__s && E(i.__H, u) && ((i.__P = !0), (i.__ = n), (i.u = u), r.__H.__h.push(i));
}
function F(n, u) {
  var i = y(t++, 4);
  !a.__s && E(i.__H, u) && ((i.__P = !1), (i.__ = n), (i.u = u), r.__h.push(i));
}
function T(n) {
  return (
    (f = 5),
    w(function () {
      return { current: n };
    }, [])
  );
}
function q(n, t, r) {
  ((f = 6),
    F(
      function () {
        if ("function" == typeof n) {
          var r = n(t());
          return function () {
            (n(null), "function" == typeof r && r());
          };
        }
        if (n)
          return (
            (n.current = t()),
            function () {
              return (n.current = null);
            }
          );
      },
      null == r ? r : r.concat(n),
    ));
}
function w(n, r) {
  var u = y(t++, 7);
  return (E(u.__H, r) && ((u.__ = n()), (u.__H = r)), u.__);
}
function b(n, t) {
  return (
    (f = 8),
    w(function () {
      return n;
    }, t)
  );
}
function j(n) {
  var u = r.context[n.__c],
    i = y(t++, 9);
  return ((i.c = n), u ? (null == i.__ && ((i.__ = !0), u.sub(r)), u.props.value) : n.__);
}
function x(n, t) {
  a.useDebugValue && a.useDebugValue(t ? t(n) : n);
}
function O(n) {
  var u = y(t++, 10),
    i = d();
  return (
    (u.__ = n),
    r.componentDidCatch ||
      (r.componentDidCatch = function (n, t) {
        (u.__ && u.__(n, t), i[1](n));
      }),
    [
      i[0],
      function () {
        return i[1]();
      },
    ]
  );
}
function P() {
  var n = y(t++, 11);
  if (!n.__) {
    for (var u = r.__v; !u.__m && u.__;) u = u.__;
    var i = u.__m || (u.__m = [0, 0]);
    n.__ = "P" + i[0] + "-" + i[1]++;
  }
  return n.__;
}
function g() {
  var n;
  do {
    for (; (n = e.shift());)
      try {
        C(n);
      } catch (t) {
        a.__e(t, { __: (n = n.__P) && n.__v });
      }
    for (; (n = c.shift());) {
      var t = n.__H;
      if (n.__P && t)
        try {
          (t.__h.some(C), t.__h.some(D), (t.__h = []));
        } catch (r) {
          ((t.__h = []), a.__e(r, n.__v));
        }
    }
  } while (e.length);
}
((a.__b = function (n) {
  ((r = null), v && v(n));
}),
  (a.__ = function (n, t) {
    (n && t.__k && t.__k.__m && (n.__m = t.__k.__m), p && p(n, t));
  }),
  (a.__r = function (n) {
    (l && l(n), (t = 0));
    var i = (r = n.__c).__H;
    (i &&
      (u == r ? (r.__h = []) : (i.__h.some(C), i.__h.some(D), (t = 0)),
      (i.__h = []),
      i.__.some(function (n) {
        (n.__N && (n.__ = n.__N), (n.u = n.__N = void 0));
      })),
      (u = r));
  }),
  (a.diffed = function (n) {
    m && m(n);
    var t = n.__c;
    (t &&
      t.__H &&
      (t.__H.__h.length && B(c.push(t)),
      t.__H.__.some(function (n) {
        n.u && (n.__H = n.u);
      })),
      (u = r = null));
  }),
  (a.__c = function (n, t) {
    (t.some(function (n) {
      try {
        (n.__h.some(C),
          (n.__h = n.__h.filter(function (n) {
            return !n.__ || D(n);
          })));
      } catch (t) {
        n.__h = [
          function () {
            throw t;
          },
        ];
      }
    }),
      h && h(n, t));
  }),
  (a.unmount = function (n) {
    s && s(n);
    var t,
      r,
      u = n.__c;
    u &&
      u.__H &&
      (u.__H.__.some(function (u) {
        try {
          if (u.__P && u.__c) {
            if (void 0 === r) {
              for (r = n.__; r && (!r.__c || !r.__c.__P);) r = r.__;
              r = r && r.__c;
            }
            ((u.__P = r), B(e.push(u)));
          } else C(u);
        } catch (n) {
          t = n;
        }
      }),
      (u.__H = void 0),
      t && a.__e(t, u.__v));
  }));
var k = "function" == typeof requestAnimationFrame;
function z(n) {
  var t,
    r = function () {
      (clearTimeout(u), k && cancelAnimationFrame(t), setTimeout(n));
    },
    u = setTimeout(r, 35);
  k && (t = requestAnimationFrame(r));
}
function B(n) {
  (1 != n && i == a.requestAnimationFrame) || ((i = a.requestAnimationFrame) || z)(g);
}
function C(n) {
  var t = r,
    u = n.__c;
  ("function" == typeof u && ((n.__c = void 0), u()), (r = t));
}
function D(n) {
  var t = r;
  ((n.__c = n.__()), (r = t));
}
function E(n, t) {
  return (
    !n ||
    n.length != t.length ||
    t.some(function (t, r) {
      return !o(t, n[r]);
    })
  );
}
function G(n, t) {
  return "function" == typeof t ? t(n) : t;
}
export {
  b as useCallback,
  j as useContext,
  x as useDebugValue,
  A as useEffect,
  O as useErrorBoundary,
  P as useId,
  q as useImperativeHandle,
  F as useLayoutEffect,
  w as useMemo,
  _ as useReducer,
  T as useRef,
  d as useState,
};
//# sourceMappingURL=hooks.mjs.map
